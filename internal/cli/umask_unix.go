//go:build unix

package cli

import "golang.org/x/sys/unix"

const ownerOnly = 0o077

// restrictNewFiles keeps everything that is made from here on, SQLite's journals
// too, from others.
func restrictNewFiles() { unix.Umask(ownerOnly) }
