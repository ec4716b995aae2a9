//go:build unix

package admission

import (
	"os"
	"syscall"
)

const (
	openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK // a pipe in the place of a key is not waited for

	othersWrite os.FileMode = 0o022
	othersAny   os.FileMode = 0o077
)

// ours reports whether a file belongs to this user or to root.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)

	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

// trustedFolder reports whether nobody else can change what is in a folder. In
// a sticky one others cannot touch what is ours, but they can add files: above,
// that does no harm; beside a database, it could be a journal.
func trustedFolder(info os.FileInfo, immediate bool) bool {
	sticky := info.Mode()&os.ModeSticky != 0
	if !ours(info) {
		return false
	}
	if immediate {
		return !sticky && info.Mode()&othersWrite == 0
	}

	return sticky || info.Mode()&othersWrite == 0
}

// trustedFile reports whether nobody else can write a file, under any name.
func trustedFile(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)

	return ok && ours(info) && stat.Nlink == 1 && info.Mode()&othersWrite == 0
}

// secret reports whether nobody else can read a file.
func secret(info os.FileInfo) bool { return ours(info) && info.Mode()&othersAny == 0 }

// syncFolder makes the names in a folder durable.
func syncFolder(folder string) error {
	d, err := os.Open(folder) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	defer d.Close()

	return d.Sync()
}
