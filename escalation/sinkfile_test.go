//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package escalation_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
)

// lines parses every line of the file and returns the runs.
func lines(t *testing.T, path string) map[ident.RunID]bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	runs := make(map[ident.RunID]bool)
	for line := range strings.Lines(string(data)) {
		h, err := escalation.ParseHandoff([]byte(strings.TrimSuffix(line, "\n")), at)
		if err != nil || !strings.HasSuffix(line, "\n") {
			t.Errorf("line of %d bytes: %v", len(line), err)
		}
		runs[h.RunID()] = true
	}

	return runs
}

func TestFileSink(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handoffs.jsonl")
	s, err := escalation.NewFileSink(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []escalation.Class{toolFailure, permission} {
		_, h := tripped(t, c)
		if err := s.Deliver(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != golden(t, toolFailure)+"\n"+golden(t, permission)+"\n" {
		t.Errorf("%v: %s", err, data)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// Moved away: the next handoff begins a new file.
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	_, h := tripped(t, uncertainty)
	if err := s.Deliver(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != golden(t, uncertainty)+"\n" {
		t.Errorf("%v: %s", err, data)
	}
	if err := s.Deliver(t.Context(), escalation.Handoff{}); !errors.Is(err, escalation.ErrSinkFailed) {
		t.Errorf("zero handoff: %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Deliver(done, h); !errors.Is(err, context.Canceled) {
		t.Errorf("done context: %v", err)
	}
}

func TestFileSinkEndsACutLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handoffs.jsonl")
	cut := golden(t, permission)[:100]
	if err := os.WriteFile(path, []byte(cut), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := escalation.NewFileSink(path)
	if err != nil {
		t.Fatal(err)
	}
	_, h := tripped(t, toolFailure)
	for range 2 {
		if err := s.Deliver(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	want := cut + "\n" + golden(t, toolFailure) + "\n" + golden(t, toolFailure) + "\n"
	if data, err := os.ReadFile(path); err != nil || string(data) != want {
		t.Errorf("%v: %s", err, data)
	}
}

func TestFileSinkRefuses(t *testing.T) {
	t.Parallel()
	_, h := tripped(t, toolFailure)
	for name, prepare := range map[string]func(t *testing.T, path string) error{
		"symlink": func(t *testing.T, path string) error {
			t.Helper()
			target := filepath.Join(t.TempDir(), "target")
			if err := os.WriteFile(target, nil, 0o600); err != nil {
				return err
			}

			return os.Symlink(target, path)
		},
		"dangling symlink": func(t *testing.T, path string) error {
			t.Helper()

			return os.Symlink(filepath.Join(t.TempDir(), "target"), path)
		},
		"folder":         func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) },
		"fifo":           func(_ *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) },
		"group readable": func(_ *testing.T, path string) error { return writeMode(path, 0o640) },
		"world writable": func(_ *testing.T, path string) error { return writeMode(path, 0o602) },
		"no folder":      func(_ *testing.T, path string) error { return os.Remove(filepath.Dir(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), secret, "handoffs.jsonl")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			s, err := escalation.NewFileSink(path) // found good, and changed afterwards
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := prepare(t, path); err != nil {
				t.Fatal(err)
			}
			err = s.Deliver(t.Context(), h)
			if !errors.Is(err, escalation.ErrSinkFailed) {
				t.Errorf("Deliver: %v", err)
			}
			contentFree(t, err)
			_, err = escalation.NewFileSink(path)
			if !errors.Is(err, escalation.ErrSinkFailed) {
				t.Errorf("NewFileSink: %v", err)
			}
			contentFree(t, err)
			if target, err := os.Readlink(path); err == nil {
				if data, err := os.ReadFile(target); err == nil && len(data) > 0 {
					t.Error("it wrote through the link")
				}
			}
		})
	}
	if _, err := escalation.NewFileSink(""); !errors.Is(err, escalation.ErrInvalidConfig) {
		t.Errorf("empty path: %v", err)
	}
}

func writeMode(path string, mode os.FileMode) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}

	return os.Chmod(path, mode)
}

// A file of another user is refused even where it could be written. Only root
// can make one, so that elsewhere its own file stands in: it must be accepted.
func TestFileSinkChecksTheOwner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handoffs.jsonl")
	if err := writeMode(path, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := os.Chown(path, 12345, -1) == nil
	if _, err := escalation.NewFileSink(path); (err != nil) != foreign {
		t.Errorf("foreign %v: %v", foreign, err)
	}
}

func TestFileSinkWaitsForTheLock(t *testing.T) {
	t.Parallel()
	_, h := tripped(t, toolFailure)
	path := filepath.Join(t.TempDir(), "handoffs.jsonl")
	s, err := escalation.NewFileSink(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Deliver(ctx, h); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, escalation.ErrSinkFailed) {
		t.Errorf("locked by another: %v", err)
	}
	result := make(chan error)
	go func() { result <- s.Deliver(t.Context(), h) }()
	if err := f.Close(); err != nil { // gives the lock back, perhaps while the other waits
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
	if n := len(lines(t, path)); n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestFileSinkManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "handoffs.jsonl")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const processes, goroutines = 3, 4
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), appendEnv+"="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for range goroutines {
		wg.Go(func() {
			if err := appendMany(path, appendLines); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(lines(t, path)); n != (processes+goroutines)*appendLines {
		t.Errorf("%d lines of %d", n, (processes+goroutines)*appendLines)
	}
}
