//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package escalation

import (
	"errors"
	"os"
)

// Without an exclusive lock and an owner check there is no safe file.
func openHandoffs(string, int) (*os.File, error) { return nil, errors.ErrUnsupported }

func tryLock(*os.File, lockKind) (bool, error) { return false, errors.ErrUnsupported }

func unlock(*os.File) error { return errors.ErrUnsupported }
