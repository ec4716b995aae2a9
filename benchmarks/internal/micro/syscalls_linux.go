//go:build linux && (amd64 || arm64 || riscv64 || ppc64le || s390x)

package micro

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
)

// openSyscalls returns the four system calls of a check, by the same means as
// the check itself: prepared paths, nothing allocated.
func openSyscalls(ledger, anchor string) (check func() error, end func(), err error) {
	files, end, err := open([2]string{ledger, anchor})
	if err != nil {
		return nil, nil, err
	}
	paths := [2][]byte{append([]byte(ledger), 0), append([]byte(anchor), 0)}
	fds := [2]int{int(files[0].Fd()), int(files[1].Fd())}

	return func() error {
		for i := range fds {
			var stat unix.Stat_t
			directory := unix.AT_FDCWD
			//nolint:gosec // as the check itself does
			if _, _, errno := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(directory), uintptr(unsafe.Pointer(&paths[i][0])),
				uintptr(unsafe.Pointer(&stat)), unix.AT_SYMLINK_NOFOLLOW, 0, 0); errno != 0 {
				return errno
			}
			var h [header]byte
			if n, err := unix.Pread(fds[i], h[:], 0); err != nil || n != len(h) {
				return fixture.ErrWork
			}
		}

		return nil
	}, end, nil
}
