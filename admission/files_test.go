//go:build unix

package admission_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/admission"
)

const nobody = 65534

func TestLoadKeyFile(t *testing.T) {
	t.Parallel()
	good := []byte("0123456789abcdef0123456789abcdef")
	for name, tc := range map[string]struct {
		prepare func(dir, key string) string
		want    error
	}{
		"good": {nil, nil},
		"link to it": {func(dir, key string) string {
			link := filepath.Join(dir, "link")
			try(os.Symlink(key, link))

			return link
		}, nil},
		"read only": {func(_, key string) string { chmod(key, 0o400); return key }, nil},
		"missing":   {func(dir, _ string) string { return filepath.Join(dir, "canary") }, admission.ErrUnreadableKey},
		"empty":     {func(string, string) string { return "" }, admission.ErrUnreadableKey},
		"file URI":  {func(_, key string) string { return "file:" + key }, admission.ErrUnreadableKey},
		"NUL":       {func(_, key string) string { return key + "\x00" }, admission.ErrUnreadableKey},
		"a folder":  {func(dir, _ string) string { return dir }, admission.ErrUnreadableKey},
		"a pipe": {func(dir, _ string) string {
			fifo := filepath.Join(dir, "pipe")
			try(syscall.Mkfifo(fifo, 0o600))

			return fifo
		}, admission.ErrUnreadableKey},
		"group can read":   {func(_, key string) string { chmod(key, 0o640); return key }, admission.ErrUnreadableKey},
		"all can read":     {func(_, key string) string { chmod(key, 0o604); return key }, admission.ErrUnreadableKey},
		"open folder":      {func(dir, key string) string { chmod(dir, 0o770); return key }, admission.ErrUnreadableKey},
		"sticky folder":    {func(dir, key string) string { chmod(dir, 0o777|os.ModeSticky); return key }, admission.ErrUnreadableKey},
		"open grandfather": {func(dir, key string) string { chmod(filepath.Dir(dir), 0o777); return key }, admission.ErrUnreadableKey},
		"sticky grandfather": {func(dir, key string) string {
			chmod(filepath.Dir(dir), 0o777|os.ModeSticky)

			return key
		}, nil},
		"short":     {func(_, key string) string { write(key, good[:31]); return key }, admission.ErrInvalidKey},
		"nothing":   {func(_, key string) string { write(key, nil); return key }, admission.ErrInvalidKey},
		"long":      {func(_, key string) string { write(key, bytes.Repeat(good, 129)); return key }, admission.ErrInvalidKey},
		"all equal": {func(_, key string) string { write(key, make([]byte, 64)); return key }, admission.ErrInvalidKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "keys")
			try(os.Mkdir(dir, 0o700))
			path := filepath.Join(dir, "key")
			write(path, good)
			if tc.prepare != nil {
				path = tc.prepare(dir, path)
			}
			k, err := admission.LoadKeyFile(path)
			if tc.want == nil {
				if err != nil || k.IsZero() {
					t.Error(errors.Unwrap(err), err)
				}

				return
			}
			wantErr(t, err, tc.want)
			if strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "canary") {
				t.Errorf("the path is in %q", err)
			}
		})
	}
}

// TestForeignOwner: a file or folder of another user is refused, whatever its
// mode. It needs root to give something away; anybody else is that other user
// for /, which belongs to root, and is told so by the good cases above.
func TestForeignOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Log("only root can give files away")

		return
	}
	give := func(path string) {
		try(os.Lchown(path, nobody, nobody))
	}
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := admission.GenerateKeyFile(key); err != nil {
		t.Fatal(err)
	}
	give(key)
	_, err := admission.LoadKeyFile(key)
	wantErr(t, err, admission.ErrUnreadableKey)

	for name, tc := range map[string]struct {
		path func(d *disk) string
		open error
	}{
		"ledger":        {func(d *disk) string { return d.cfg.Ledger }, nil},
		"ledger folder": {func(d *disk) string { return filepath.Dir(d.cfg.Ledger) }, nil},
		"anchor":        {func(d *disk) string { return d.cfg.Anchor }, admission.ErrInvalidAnchor},
		"anchor folder": {func(d *disk) string { return filepath.Dir(d.cfg.Anchor) }, admission.ErrInvalidAnchor},
	} {
		d := newStore(t)
		c := d.controller(t)
		give(tc.path(d))
		checkPlaces(t, name, d, c, tc.open)
	}
}

// checkPlaces: a store that was open before tells untrusted_state; opening it
// tells the anchor's faults, and a check the ledger's.
func checkPlaces(t *testing.T, name string, d *disk, c *admission.Controller, open error) {
	t.Helper()
	if st := c.Status(t.Context(), global); !errors.Is(st.Reason, admission.ErrUntrustedState) {
		t.Errorf("%s: %+v", name, st)
	}
	s, err := admission.OpenStore(t.Context(), d.cfg)
	if open != nil {
		if !errors.Is(err, open) {
			t.Errorf("%s: %v, want %v", name, err, open)
		}

		return
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)

		return
	}
	if _, err := s.Head(t.Context()); !errors.Is(err, admission.ErrUntrustedState) {
		t.Errorf("%s: %v", name, err)
	}
	if _, err := newController(t, s).Stop(t.Context(), admission.Transition{Scope: global}); !errors.Is(err, admission.ErrUntrustedState) {
		t.Errorf("%s: %v", name, err)
	}
}

// TestPlaces: what may not be around a ledger and an anchor, found when the
// store is opened and also when it comes to be later.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(d *disk, path string)
		// whether anchor's fault is found on loading only, as one of the ledger is
		loading bool
	}{
		"group can write":     {func(_ *disk, path string) { chmod(path, 0o620) }, false},
		"folder of the group": {func(_ *disk, path string) { chmod(filepath.Dir(path), 0o770) }, false},
		"folder of all":       {func(_ *disk, path string) { chmod(filepath.Dir(path), 0o777|os.ModeSticky) }, false},
		"hard link": {func(d *disk, path string) {
			try(os.Link(path, filepath.Join(d.dir, "second")))
		}, false},
		"symlink": {func(d *disk, path string) {
			try(os.Rename(path, path+".real"))
			try(os.Symlink(path+".real", path))
		}, false},
		"missing": {func(_ *disk, path string) {
			try(os.Remove(path))
		}, true},
		"a folder in its place": {func(_ *disk, path string) {
			try(os.Remove(path))
			try(os.Mkdir(path, 0o700))
		}, false},
	} {
		for _, which := range []string{"ledger", "anchor"} {
			t.Run(name+"/"+which, func(t *testing.T) {
				t.Parallel()
				d := newStore(t)
				c := d.controller(t)
				enable(t, c, global)
				path, open := d.cfg.Ledger, error(nil)
				if which == "anchor" {
					path = d.cfg.Anchor
					if !tc.loading {
						open = admission.ErrInvalidAnchor
					}
				}
				tc.spoil(d, path)
				checkPlaces(t, name, d, c, open)
			})
		}
	}
}

// TestPaths: what is no path for a ledger or an anchor.
func TestPaths(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"empty": "", "memory": ":memory:", "URI": "file:/tmp/x", "URI in capitals": "FILE:x", "NUL": "/tmp/x\x00y", "folder": "/tmp/",
	} {
		for which, want := range map[string]error{"ledger": admission.ErrUntrustedState, "anchor": admission.ErrInvalidAnchor} {
			d := newDisk(t)
			if which == "ledger" {
				d.cfg.Ledger = path
			} else {
				d.cfg.Anchor = path
			}
			_, err := admission.Initialize(t.Context(), d.cfg)
			wantErr(t, err, want)
			_, err = admission.OpenStore(t.Context(), d.cfg)
			wantErr(t, err, want)
			_, err = admission.OpenChecker(t.Context(), d.cfg)
			wantErr(t, err, want)
			if t.Failed() {
				t.Fatal(name, which)
			}
		}
	}
	t.Run("one file", func(t *testing.T) {
		t.Parallel()
		d := newDisk(t)
		for _, anchor := range []string{
			d.cfg.Ledger, filepath.Dir(d.cfg.Ledger) + "/../ledger/ledger.db", d.cfg.Ledger + "-journal", d.cfg.Ledger + "-wal",
		} {
			cfg := d.cfg
			cfg.Anchor = anchor
			_, err := admission.Initialize(t.Context(), cfg)
			wantErr(t, err, admission.ErrInvalidAnchor)
			_, err = admission.OpenStore(t.Context(), cfg)
			wantErr(t, err, admission.ErrInvalidAnchor)
		}
		link := filepath.Join(d.dir, "other")
		try(os.Symlink(filepath.Dir(d.cfg.Ledger), link))
		d.cfg.Anchor = filepath.Join(link, "ledger.db")
		_, err := admission.Initialize(t.Context(), d.cfg)
		wantErr(t, err, admission.ErrInvalidAnchor)
	})
	t.Run("folders by a link", func(t *testing.T) {
		t.Parallel()
		d := newDisk(t)
		link := filepath.Join(d.dir, "link")
		try(os.Symlink(filepath.Dir(d.cfg.Ledger), link))
		d.cfg.Ledger = filepath.Join(link, "a%20b?c=d#e 'f';--.db")
		if _, err := admission.Initialize(t.Context(), d.cfg); err != nil {
			t.Fatal(err)
		}
		enable(t, d.controller(t), global)
		// It was resolved once: turning the link elsewhere changes nothing.
		c := d.controller(t)
		try(os.Remove(link))
		if st := c.Status(t.Context(), global); st.State != admission.Enabled {
			t.Errorf("%+v", st)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		t.Parallel()
		d := newStore(t)
		enable(t, d.controller(t), global)
		try(os.Rename(filepath.Dir(d.cfg.Ledger), filepath.Join(d.dir, "away")))
		// The anchor still says how far things had come.
		st := d.controller(t).Status(t.Context(), global)
		if !errors.Is(st.Reason, admission.ErrUntrustedState) || st.Generation != 2 {
			t.Errorf("%+v", st)
		}
		_, err := d.controller(t).Stop(t.Context(), admission.Transition{Scope: global})
		wantErr(t, err, admission.ErrUntrustedState)
		_, err = d.open(t).Append(t.Context(), admission.Head{}, admission.Entry{})
		wantErr(t, err, admission.ErrUntrustedState)
		_, err = d.open(t).Receipts(t.Context(), 0, 1)
		wantErr(t, err, admission.ErrUntrustedState)
		_, err = admission.Initialize(t.Context(), d.cfg)
		wantErr(t, err, admission.ErrUntrustedState)
		d.cfg.Anchor = filepath.Join(d.dir, "none", "a")
		_, err = admission.OpenStore(t.Context(), d.cfg)
		wantErr(t, err, admission.ErrInvalidAnchor)
	})
}

func TestGenerateKeyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := admission.GenerateKeyFile(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() != 32 || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if _, err := admission.LoadKeyFile(path); err != nil {
		t.Error(err)
	}
	before, _ := os.ReadFile(path)
	wantErr(t, admission.GenerateKeyFile(path), admission.ErrAlreadyInitialized)
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the key was written over")
	}
	second := filepath.Join(dir, "second")
	if err := admission.GenerateKeyFile(second); err != nil {
		t.Fatal(err)
	}
	if other, _ := os.ReadFile(second); bytes.Equal(before, other) {
		t.Error("the same key twice")
	}
	link := filepath.Join(dir, "link")
	try(os.Symlink(filepath.Join(dir, "nowhere"), link))
	wantErr(t, admission.GenerateKeyFile(link), admission.ErrAlreadyInitialized)
	wantErr(t, admission.GenerateKeyFile(""), admission.ErrUnreadableKey)
	wantErr(t, admission.GenerateKeyFile(filepath.Join(dir, "none", "key")), admission.ErrUnreadableKey)
	chmod(dir, 0o777)
	wantErr(t, admission.GenerateKeyFile(filepath.Join(dir, "third")), admission.ErrUnreadableKey)
}
