package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// completing reports whether a shell asks for what the next word may be. It is
// told command names, flags and constants of ours; files it finds by itself.
func completing(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

// muteStderr takes the process's standard error away from cobra, which writes
// what it does not understand of a line to complete there, past the streams that
// it was given.
func muteStderr() (restore func()) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		null = nil // writing to a nil *os.File is an error, and mute as well
	}
	stderr := os.Stderr
	os.Stderr = null

	return func() {
		os.Stderr = stderr
		_ = null.Close()
	}
}

// completeWords says what the value of a flag may be.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}
