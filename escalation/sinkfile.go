package escalation

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/interlock-go/interlock/middleware"
)

const (
	fileMode = 0o600
	// lockRetry is how often a lock that another process holds is tried again.
	lockRetry = 2 * time.Millisecond
	// lockLimit bounds the wait for it where the context has no deadline.
	lockLimit = 5 * time.Second

	// The three ways to open the file.
	openDeliver = os.O_RDWR | os.O_APPEND | os.O_CREATE
	openDecide  = os.O_RDWR | os.O_APPEND // a decision about nothing makes no file
	openRead    = os.O_RDONLY
)

// lockKind is how the file is locked: by one who appends, or by those who want
// to know how much of it is whole.
type lockKind uint8

const (
	lockExclusive lockKind = iota
	lockShared
)

// FileSink appends handoffs to a file of JSON lines, one canonical line each.
// Several goroutines and several processes may append to one file: each line is
// written by one write call under an exclusive lock of the file, and is on disk
// (fsync) before Deliver returns. A file whose last line was cut, by a crash or
// a full disk, is ended with a newline first, so that no line is lost but the
// cut one.
//
// The file is opened for each handoff, so it may be moved away at any time. It
// is made with mode 0600. A symbolic link, anything that is not a regular file,
// a file of another user, or one that group or others may use, is refused:
// whoever can write it could hide a handoff. The folder is the operator's to
// protect. It works on Linux, macOS and the BSDs; elsewhere NewFileSink fails.
type FileSink struct {
	path string
	turn chan struct{} // one at a time in this process, so that few poll the lock
}

var _ Sink = (*FileSink)(nil)

// NewFileSink returns a sink that appends to the file at path. It opens the
// file once, making it if needed, to find out early what would fail later; that
// is sink_failed. An empty path is a [ConfigError].
func NewFileSink(path string) (*FileSink, error) {
	if path == "" {
		return nil, &ConfigError{reason: middleware.ReasonInvalidConfig, field: "path", bound: "set"}
	}
	abs, err := filepath.Abs(path) // a later chdir does not move it
	if err != nil {
		return nil, sinkFailed(err)
	}
	f, err := openHandoffs(abs, openDeliver)
	if err != nil {
		return nil, sinkFailed(err)
	}
	if err := f.Close(); err != nil {
		return nil, sinkFailed(err)
	}

	return &FileSink{path: abs, turn: make(chan struct{}, 1)}, nil
}

// Deliver appends the line. Waiting for other writers ends when ctx is done,
// and after 5 s.
func (s *FileSink) Deliver(ctx context.Context, h Handoff) error {
	line, err := handoffLine(h)
	if err != nil {
		return sinkFailed(err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockLimit)
	defer cancel()
	if err := takeTurn(ctx, s.turn); err != nil {
		return sinkFailed(err)
	}
	defer func() { <-s.turn }()
	if err := s.append(ctx, line); err != nil {
		return sinkFailed(err)
	}

	return nil
}

// Format prints the type for every verb and flag: a path may tell something.
func (s *FileSink) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "escalation.FileSink") }

func (s *FileSink) append(ctx context.Context, line []byte) (err error) {
	f, err := openHandoffs(s.path, openDeliver)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil { // closing also gives the lock back
			err = e
		}
	}()
	if err := lockFile(ctx, f, lockExclusive); err != nil {
		return err
	}

	return appendLine(f, s.path, line)
}

// appendLine writes one line, which ends in a newline, to the file at path that
// f has open for appending and holds locked. It is on disk afterwards.
func appendLine(f *os.File, path string, line []byte) error {
	size, cut, err := tail(f)
	if err != nil {
		return err
	}
	if cut {
		line = append([]byte{'\n'}, line...)
	}
	if _, err := f.Write(line); err != nil { // a short write is an error of os.File
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if size == 0 {
		return syncFolder(filepath.Dir(path)) // the file's name has to be on disk too
	}

	return nil
}

// tail returns the size of f and whether its last line was cut.
func tail(f *os.File) (size int64, cut bool, err error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, false, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return 0, false, err
	}

	return info.Size(), last[0] != '\n', nil
}

// lockFile waits with a timer and not in the system call, which no context
// could end.
func lockFile(ctx context.Context, f *os.File, how lockKind) error {
	for {
		if locked, err := tryLock(f, how); locked || err != nil {
			return err
		}
		t := time.NewTimer(lockRetry)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()

			return ctx.Err()
		}
	}
}

func syncFolder(path string) error {
	d, err := os.Open(path) //nolint:gosec // the operator's path
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}

	return err
}
