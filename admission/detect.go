package admission

import (
	"context"
	"encoding/binary"
	"os"
)

const headerBytes = 100

// header is how every SQLite database begins. Each transaction that changes a
// file raises the counter in it by one, before the commit returns.
type header [headerBytes]byte

func (h *header) counter() uint32 { return binary.BigEndian.Uint32(h[24:28]) }

// rollback reports whether the file is written and read by way of a rollback
// journal: with a write-ahead log a commit would not touch the file.
func (h *header) rollback() bool { return h[18] == 1 && h[19] == 1 }

// fixed is what no transition changes: without the counter, the numbers of pages
// and the writer's version. The schema's own counter is in it.
func (h *header) fixed() header {
	f := *h
	clear(f[24:40])
	clear(f[92:])

	return f
}

// fileState is what is known of a file without opening it. Fields that a system
// does not tell are zero.
type fileState struct {
	device, inode, links uint64
	size                 int64
	modified, changed    int64 // Unix nanoseconds
	mode, owner          uint32
	info                 os.FileInfo // where the numbers above do not identify a file
}

func (a *fileState) sameFile(b *fileState) bool {
	if a.info != nil || b.info != nil {
		return a.info != nil && b.info != nil && os.SameFile(a.info, b.info) && a.links == b.links
	}

	return a.device == b.device && a.inode == b.inode && a.links == b.links
}

func (a *fileState) same(b *fileState) bool {
	return a.sameFile(b) && a.size == b.size && a.modified == b.modified && a.changed == b.changed &&
		a.mode == b.mode && a.owner == b.owner
}

// moment is what can be seen of both files from outside, ledger first.
type moment struct {
	state  [2]fileState
	header [2]header
}

func (a *moment) same(b *moment) bool {
	return a.header == b.header && a.state[0].same(&b.state[0]) && a.state[1].same(&b.state[1])
}

// follows reports whether nothing but that many transitions can have happened
// since before: the same files, the same form, and each counter moved by one for
// each. A foreign transaction moves a counter too, and one that a transition
// hides is thereby seen without reading old rows (which is what count(*) =
// generation would have to do, and it would not see a row that was changed).
// Without a transition nothing else may have moved.
func (a *moment) follows(before *moment, transitions uint64) bool {
	for i := range a.header {
		switch now, then := &a.header[i], &before.header[i]; {
		case !a.state[i].sameFile(&before.state[i]), !now.rollback(), now.fixed() != then.fixed(),
			uint64(now.counter()-then.counter()) != transitions:
			return false
		}
	}

	return transitions != 0 || a.same(before)
}

// snapshot is what was verified, and the moment that it was verified at. It is
// never changed, only replaced.
type snapshot struct {
	moment

	session *session
	view    *view
	version [2]int64 // PRAGMA data_version of both, for versionDetector
}

// detector tells whether files may have changed since a snapshot.
type detector interface {
	// peek needs no lock and no connection. False is "perhaps".
	peek(s *snapshot) bool
	// compare may use the connection of s, which the caller has for itself.
	compare(ctx context.Context, s *snapshot) (bool, error)
	// look returns the state of what a path names.
	look(f *sessionFile) (fileState, error)
}

// versionDetector asks SQLite, on the connection that verified the snapshot,
// whether anybody else has committed since, and the system whether the paths
// still name the files that this connection has open. It works everywhere, and
// costs some five times what headers cost. It reads the files under SQLite's
// lock, so it waits for a commit in progress.
type versionDetector struct{}

func (versionDetector) peek(*snapshot) bool { return false }

func (d versionDetector) compare(ctx context.Context, s *snapshot) (bool, error) {
	for i := range s.session.file {
		now, err := d.look(&s.session.file[i])
		if err != nil || !now.same(&s.state[i]) {
			return false, nil //nolint:nilerr // the verification that follows says what it is
		}
	}
	version, err := s.session.conn.dataVersion(ctx)

	return err == nil && version == s.version, err
}

func (versionDetector) look(f *sessionFile) (fileState, error) {
	info, err := checkFile(f.name) // also that it has one link
	if err != nil {
		return fileState{}, err
	}

	return fileState{
		info: info, links: 1, size: info.Size(), modified: info.ModTime().UnixNano(), mode: uint32(info.Mode()),
	}, nil
}

// dataVersion returns a number for each file that changes when another
// connection commits to it.
func (k *conn) dataVersion(ctx context.Context) (v [2]int64, err error) {
	for i, schema := range [...]string{"main", "anchor"} {
		if err = k.row(ctx, "PRAGMA "+schema+".data_version").Scan(&v[i]); err != nil {
			return v, err
		}
	}

	return v, nil
}
