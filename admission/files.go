package admission

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// What is wrong with a path. These are causes: their text is never rendered, and
// holds no path either.
var (
	errPath   = errors.New("not a usable path")
	errFile   = errors.New("not a regular file of this user with one link")
	errFolder = errors.New("a folder above is open to others")
	errSame   = errors.New("two names for one file")
	errSystem = errors.New("not a local file system")
)

// sideFiles are what SQLite puts beside a database.
var sideFiles = [...]string{"-journal", "-wal", "-shm"} //nolint:gochecknoglobals // compiled table

// wellFormed refuses what SQLite would not take for the name of a file.
func wellFormed(path string) error {
	if path == "" || path == ":memory:" || strings.HasPrefix(strings.ToLower(path), "file:") ||
		strings.ContainsRune(path, 0) || os.IsPathSeparator(path[len(path)-1]) {
		return errPath
	}

	return nil
}

// resolve returns the absolute path with every folder resolved and the last
// element as it is, which may not exist yet.
func resolve(path string) (string, error) {
	if err := wellFormed(path); err != nil {
		return "", err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", err
	}

	return filepath.Join(folder, filepath.Base(path)), nil
}

// checkPlace verifies the folders above a resolved path, and that it lies on a
// local file system.
func checkPlace(path string) error {
	if err := checkFolders(path); err != nil {
		return err
	}

	return checkFileSystem(filepath.Dir(path))
}

// checkFolders verifies every folder above a resolved path.
func checkFolders(path string) error {
	for dir, first := filepath.Dir(path), true; ; dir, first = filepath.Dir(dir), false {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() || !trustedFolder(info, first) {
			return errFolder
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// checkFile verifies the file itself, without opening it, and returns what
// identifies it.
func checkFile(path string) (os.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || !trustedFile(info) {
		return nil, errFile
	}

	return info, nil
}

// files are the two files of a store, resolved.
type files struct{ ledger, anchor string }

// identity is which files the paths named at one moment.
type identity struct{ ledger, anchor os.FileInfo }

func (a identity) same(b identity) bool {
	return os.SameFile(a.ledger, b.ledger) && os.SameFile(a.anchor, b.anchor)
}

// check verifies places and files, and returns which files they are now.
func (f files) check() (identity, error) {
	var id identity
	for _, path := range [...]string{f.ledger, f.anchor} {
		if err := checkPlace(path); err != nil {
			return id, err
		}
	}
	var err error
	if id.ledger, err = checkFile(f.ledger); err != nil {
		return id, err
	}
	if id.anchor, err = checkFile(f.anchor); err != nil {
		return id, err
	}
	if os.SameFile(id.ledger, id.anchor) {
		return id, errSame
	}

	return id, nil
}

// distinct refuses two paths of which one is the other, or its journal.
func (f files) distinct() error {
	if f.ledger == f.anchor {
		return errSame
	}
	for _, side := range sideFiles {
		if f.ledger == f.anchor+side || f.anchor == f.ledger+side {
			return errSame
		}
	}

	return nil
}
