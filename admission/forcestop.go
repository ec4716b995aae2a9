package admission

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/interlock-go/interlock/middleware"
)

const (
	stoppedSuffix = ".stopped"
	// stoppedNames is how many anchors that were taken away before may lie there.
	stoppedNames = 100
)

var errForced = errors.New("the anchor was taken away")

// Forcer is a [Store] that can be stopped although somebody holds it locked.
type Forcer interface {
	// ForceStop makes every check in every process fail from now on, without
	// waiting for a lock, and leaves what is stored as it is. Only a human undoes
	// it.
	ForceStop(ctx context.Context) error
}

var _ Forcer = (*SQLiteStore)(nil)

// ForceStop is [Controller.Stop], and where that ends in store_busy it takes the
// anchor away (see [SQLiteStore.ForceStop]): then every scope is stopped, in
// every process of the host, the status is untrusted_state and the error nil. A
// store that is no [Forcer] leaves it at store_busy.
func (c *Controller) ForceStop(ctx context.Context, t Transition) (Status, error) {
	status, err := c.Stop(ctx, t)
	if middleware.ReasonOf(err) != middleware.ReasonStoreBusy {
		return status, err
	}
	forcer, ok := c.store.(Forcer)
	if !ok {
		return status, err
	}
	if err := forceStop(context.WithoutCancel(ctx), forcer); err != nil { // ctx may have run out while Stop waited
		return Status{}, err
	}
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	c.known.last = middleware.ReasonUntrustedState

	return Status{
		Scope: t.Scope, State: Stopped, Reason: middleware.ReasonUntrustedState, Generation: c.known.mark.Generation,
	}, nil
}

func forceStop(ctx context.Context, f Forcer) (err error) {
	defer containStore(&err)
	if err = f.ForceStop(ctx); err != nil && middleware.ReasonOf(err) == 0 {
		err = fail(middleware.ReasonStoreFailed, err)
	}

	return err
}

// ForceStop gives the anchor another name, its own with ".stopped" behind
// (".stopped.2" and so on, if that exists: nothing is written over), and syncs
// the folder. No lock prevents that, and without an anchor every check fails. An
// anchor that is away already is fine. To undo it, find out who held the lock,
// and move the file back to its name.
//
// Errors are untrusted_state (a closed store) and store_failed (a checker, or
// the file system refused): then nothing has changed.
func (s *SQLiteStore) ForceStop(context.Context) error {
	if err := s.usable(); err != nil {
		return err
	}
	if s.readOnly {
		return fail(middleware.ReasonStoreFailed, nil)
	}
	err := putAway(s.files.anchor)
	if err == nil {
		err = syncFolder(filepath.Dir(s.files.anchor))
	}
	if err != nil {
		return fail(middleware.ReasonStoreFailed, err)
	}

	return nil
}

// putAway renames a file to a name that nobody has. A second link is made before
// the first one goes, because making a link is what fails if the name is taken;
// in between the file has two, which no check accepts either.
func putAway(path string) error {
	for i := 1; i <= stoppedNames; i++ {
		name := path + stoppedSuffix
		if i > 1 {
			name += "." + strconv.Itoa(i)
		}
		switch err := os.Link(path, name); {
		case err == nil:
			return os.Remove(path)
		case isMissing(err):
			return nil
		case errors.Is(err, os.ErrExist):
		default: // a file system without links
			if _, err := os.Lstat(name); !isMissing(err) {
				continue
			}

			return os.Rename(path, name)
		}
	}

	return errForced
}
