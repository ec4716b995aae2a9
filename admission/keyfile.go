package admission

import (
	"crypto/rand"
	"io"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/middleware"
)

const keyMode = 0o600

// LoadKeyFile reads a key as [ParseKey] takes it. The file has to be a regular
// one (a link to one is fine: that is how secrets are mounted) of this user or
// of root that nobody else can read, in folders that nobody else can write to;
// else unreadable_key.
func LoadKeyFile(path string) (Key, error) {
	if wellFormed(path) != nil {
		return Key{}, fail(middleware.ReasonUnreadableKey, errPath)
	}
	secretBytes, err := readKey(path)
	if err != nil {
		return Key{}, fail(middleware.ReasonUnreadableKey, err)
	}
	defer clear(secretBytes)

	return ParseKey(secretBytes)
}

func readKey(path string) ([]byte, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	if err := checkFolders(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat() // of what is open, not of what the path names by now
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !secret(info) {
		return nil, errFile
	}

	return io.ReadAll(io.LimitReader(f, maxKey+1))
}

// GenerateKeyFile writes a new key of 32 random bytes, mode 0600. It never
// writes over anything (already_initialized). A folder that [LoadKeyFile] would
// refuse is unreadable_key; a failed write is store_failed and leaves no file.
func GenerateKeyFile(path string) error {
	path, err := resolve(path)
	if err == nil {
		err = checkFolders(path)
	}
	if err != nil {
		return fail(middleware.ReasonUnreadableKey, err)
	}
	f, err := createNew(path)
	if err != nil {
		return err
	}
	var key [minKey]byte
	_, _ = rand.Read(key[:]) // never fails: it would end the program
	defer clear(key[:])
	_, err = f.Write(key[:])
	if err == nil {
		err = f.Sync()
	}
	if errClose := f.Close(); err == nil {
		err = errClose
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(path) // made by this call

		return fail(middleware.ReasonStoreFailed, err)
	}

	return nil
}

// createNew makes a file that did not exist, not even as a link to nowhere.
func createNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|openFlags, keyMode) //nolint:gosec // the operator names it
	switch {
	case os.IsExist(err):
		return nil, fail(middleware.ReasonAlreadyInitialized, err)
	case err != nil:
		return nil, fail(middleware.ReasonStoreFailed, err)
	}

	return f, nil
}
