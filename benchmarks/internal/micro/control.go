package micro

import (
	"crypto/sha256"
	"os"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
)

// shortLedger is the length of a ledger where its length does not matter.
const shortLedger = 10

// controls is work that is not ours.
func controls(l *fixture.Ledgers) []row.Row {
	return []row.Row{
		{
			Name: Getppid, Control: true, About: "the cheapest system call: the machine's unit",
			Prepare: func() (*row.Work, error) {
				return &row.Work{Run: row.Loop(func() error {
					if os.Getppid() < 0 {
						return fixture.ErrWork
					}

					return nil
				})}, nil
			},
		},
		{
			Name: Syscalls, Control: true, RatioTo: Getppid,
			About:   "the bare system calls of a strict check: newfstatat of both files, pread of both headers",
			Prepare: func() (*row.Work, error) { return prepareSyscalls(l) },
		},
		{
			Name: Hash, Control: true, RatioTo: Getppid, About: "SHA-256 of 64 bytes: no system call, no memory",
			Prepare: func() (*row.Work, error) {
				var block [64]byte

				return &row.Work{Run: row.Loop(func() error {
					sum := sha256.Sum256(block[:])
					block[0] = sum[0]

					return nil
				})}, nil
			},
		},
	}
}

func prepareSyscalls(l *fixture.Ledgers) (*row.Work, error) {
	ledger, err := l.Get(shortLedger)
	if err != nil {
		return nil, err
	}
	check, end, err := openSyscalls(ledger.StoreConfig.Ledger, ledger.StoreConfig.Anchor)
	if err != nil {
		ledger.Release()

		return nil, err
	}

	return &row.Work{Run: row.Loop(check), Close: func() { end(); ledger.Release() }}, nil
}

// open opens both files for reading.
func open(paths [2]string) (files [2]*os.File, end func(), err error) {
	end = func() {
		for _, f := range files {
			_ = f.Close() // of a nil file: an error, nothing more
		}
	}
	for i, path := range paths {
		if files[i], err = os.Open(path); err != nil { //nolint:gosec // a ledger of ours
			end()

			return files, nil, err
		}
	}

	return files, end, nil
}

// header is how much of a file is read: the header of a SQLite database.
const header = 100
