// Package cli is the operator's command line, as a function:
//
//	os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//
// Each command prints one JSON object on standard output and exits 0, or one
// with a reason_code on standard error and exits 1; status prints its object on
// standard output also when the state is untrusted, and exits 1. log and watch
// print one object on a line for each receipt, handoffs list one for each
// handoff and one with the counts; damaged lines of that file exit 1. completion
// prints the script of a shell. Whatever goes wrong, no path, key, argument or
// text of another library is printed: all messages of the command parser are
// replaced by invalid_control_metadata.
//
// Run sets the process's umask to 077 where there is one, and makes a file size
// limit an error of the write. It starts no goroutine that outlives it.
package cli
