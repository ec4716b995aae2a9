// Package canary holds one test: a secret is planted in every way into the
// library, and looked for in every way out, as otelxtest.Matrix keeps account.
//
// slots_test.go is the table of the ways in: each row changes a plan, which says
// what the world around the guard says and does. outlets_test.go is the table of
// the ways out: each row says what is read, which marker must be in it, and how
// the usual way of doing it lets the secret out there, the twin that must be
// caught. A new component adds its rows to both, and what drives it to
// world_test.go; nothing else changes.
//
// The agents are langchaingo's, textual (MRKL) and with functions, on its openai
// and anthropic clients, over HTTP to a scripted provider; the ledger, its anchor,
// key and the handoffs are files, the telemetry goes over the network to a
// receiver, the command line is that of the program. The tests run one after the
// other: standard output, standard error and the standard logger are captured.
//
// programs_test.go does the same to the example, as a program of its own.
package canary
