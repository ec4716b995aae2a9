package admission

import (
	"context"
	"os"
	"sync"

	"modernc.org/sqlite"
)

// session is both files, open: a connection, and beside it a descriptor of each
// file, for its header. The connection serves one caller at a time; the
// descriptors serve all.
type session struct {
	conn *conn
	file [2]sessionFile // ledger, anchor
}

type sessionFile struct {
	name string
	path []byte // name as the system calls take it, ending in NUL
	file *os.File
}

// openSession opens both files for reading, between two looks at the paths. A
// writer's connection may write, to play back a journal that a dead process
// left; no statement of its can.
func (s *SQLiteStore) openSession(ctx context.Context) (*session, error) {
	before, err := s.files.check()
	if err != nil {
		return nil, err
	}
	n := new(session)
	for i, name := range [...]string{s.files.ledger, s.files.anchor} {
		f := &n.file[i]
		f.name, f.path = name, append([]byte(name), 0)
		if f.file, err = held.open(name); err != nil {
			n.close()

			return nil, err
		}
	}
	mode := accessWrite
	if s.readOnly {
		mode = accessReadOnly
	}
	if n.conn, err = openBoth(ctx, s.files, mode); err == nil {
		err = n.conn.exec(ctx, "PRAGMA query_only=ON")
	}
	if err == nil {
		err = n.names(before)
	}
	if err != nil {
		n.close()

		return nil, err
	}

	return n, nil
}

// names verifies that the paths name what is open, and named it before.
func (n *session) names(before identity) error {
	for i, then := range [...]os.FileInfo{before.ledger, before.anchor} {
		open, err := n.file[i].file.Stat()
		if err != nil {
			return err
		}
		if !os.SameFile(open, then) || !sameFile(n.file[i].name, open) {
			return errReplaced
		}
	}

	return nil
}

// close closes the connection, and only then the descriptors.
func (n *session) close() {
	if n == nil {
		return
	}
	if n.conn != nil {
		n.conn.close()
	}
	for i := range n.file {
		if n.file[i].file != nil {
			held.close(n.file[i].file)
		}
	}
}

// observe looks at both files from outside.
func (s *SQLiteStore) observe(n *session) (m moment, err error) {
	for i := range n.file {
		if m.state[i], err = s.detect.look(&n.file[i]); err != nil {
			return m, err
		}
		if _, err = n.file[i].file.ReadAt(m.header[i][:], 0); err != nil {
			return m, err // a file that is shorter than its header too
		}
		if !m.header[i].rollback() {
			return m, errJournal
		}
	}

	return m, nil
}

// descriptors are the open descriptors of databases that are not SQLite's own.
// Where SQLite locks by POSIX locks (the program had opened a database before
// this package could ask for better ones, or the system has none), closing any
// descriptor of a file drops every lock that the process has on it, in the
// middle of a commit too. So they are then kept open until this package has no
// connection.
type descriptors struct {
	mu          sync.Mutex
	connections int
	kept        map[*os.File]bool // whether it may be closed; also keeps the collector from closing it
}

// held is for the process, as its locks are.
var held = descriptors{kept: make(map[*os.File]bool)} //nolint:gochecknoglobals // as SQLite's own table of open files

func (d *descriptors) open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|openFlags, 0) //nolint:gosec // the operator names it
	if err == nil && !sqlite.OFDLockingEnabled() {
		d.keep(f, false)
	}

	return f, err
}

func (d *descriptors) close(f *os.File) {
	if sqlite.OFDLockingEnabled() {
		_ = f.Close()

		return
	}
	d.keep(f, true)
	d.connected(0)
}

func (d *descriptors) keep(f *os.File, closable bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept[f] = closable
}

// connected counts connections, and closes what waits when there is none.
func (d *descriptors) connected(change int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.connections += change
	if d.connections > 0 {
		return
	}
	for f, closable := range d.kept {
		if closable {
			_ = f.Close()
			delete(d.kept, f)
		}
	}
}
