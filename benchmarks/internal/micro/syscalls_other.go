//go:build !(linux && (amd64 || arm64 || riscv64 || ppc64le || s390x))

package micro

import "os"

// openSyscalls returns the nearest that the standard library has to the system
// calls of a check, where those of Linux do not exist.
func openSyscalls(ledger, anchor string) (check func() error, end func(), err error) {
	paths := [2]string{ledger, anchor}
	files, end, err := open(paths)
	if err != nil {
		return nil, nil, err
	}

	return func() error {
		for i, f := range files {
			if _, err := os.Lstat(paths[i]); err != nil {
				return err
			}
			var h [header]byte
			if _, err := f.ReadAt(h[:], 0); err != nil {
				return err
			}
		}

		return nil
	}, end, nil
}
