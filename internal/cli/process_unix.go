//go:build unix

package cli

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

const ownerOnly = 0o077

// restrictNewFiles keeps everything that is made from here on, SQLite's journals
// too, from others.
func restrictNewFiles() {
	unix.Umask(ownerOnly)
	signal.Ignore(unix.SIGXFSZ) // a file size limit is a failed write, not the end of the program
}
