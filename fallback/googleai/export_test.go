package googleai

// NewClient is the factory that init registers.
var NewClient = newClient
