package cli

// RunEnv is Run with an environment of the test's own.
var RunEnv = run
