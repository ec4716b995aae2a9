//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package escalation

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openHandoffs opens the file (with flag, one of the three ways of sinkfile.go)
// and refuses one that is not ours. The checks are made on the open file, so
// nothing can be swapped in between. O_NONBLOCK keeps a FIFO from blocking
// before it is refused.
func openHandoffs(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, fileMode) //nolint:gosec // the operator's path
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o077 != 0 || int(st.Uid) != os.Geteuid() {
		return nil, errors.Join(os.ErrPermission, f.Close())
	}

	return f, nil
}

func tryLock(f *os.File, how lockKind) (bool, error) {
	flag := unix.LOCK_EX
	if how == lockShared {
		flag = unix.LOCK_SH
	}
	err := unix.Flock(int(f.Fd()), flag|unix.LOCK_NB)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		return false, nil
	default:
		return false, err
	}
}

func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
