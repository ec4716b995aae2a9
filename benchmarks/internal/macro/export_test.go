package macro

// Outage is the outage's rows, of any size.
var Outage = outage
