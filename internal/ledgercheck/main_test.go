package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
)

// -golden writes a golden ledger anew. Old ones have to verify for ever: add
// another one beside them when the format changes.
var golden = flag.Bool("golden", false, "write testdata/golden-v1")

const goldenKey = "the key of the golden ledgers, which is no secret"

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}

	return v
}

func try(err error) {
	if err != nil {
		panic(err)
	}
}

// files are a ledger, its anchor and its key in a folder.
type files struct{ ledger, anchor, key string }

func in(dir string) files {
	return files{filepath.Join(dir, "ledger"), filepath.Join(dir, "anchor"), filepath.Join(dir, "key")}
}

// copied gives a copy that may be changed, with the modes that a store has to
// have: a checkout has others.
func (f files) copied(t *testing.T) files {
	t.Helper()
	to := in(t.TempDir())
	for from, name := range map[string]string{f.ledger: to.ledger, f.anchor: to.anchor, f.key: to.key} {
		try(os.WriteFile(name, must(os.ReadFile(from)), 0o600))
	}

	return to
}

// independently is the verdict of this program.
func (f files) independently(t *testing.T) outcome {
	t.Helper()
	var stdout bytes.Buffer
	code := run([]string{f.ledger, f.anchor, f.key}, &stdout)
	var o outcome
	try(json.Unmarshal(stdout.Bytes(), &o))
	if (code == 0) != o.OK || strings.Contains(stdout.String(), string(filepath.Separator)) {
		t.Errorf("exit %d with %s", code, &stdout)
	}

	return o
}

// byAdmission is the verdict of the package that wrote the ledger.
func (f files) byAdmission(t *testing.T) (admission.Verification, error) {
	t.Helper()
	key, err := admission.LoadKeyFile(f.key)
	if err != nil {
		return admission.Verification{}, err
	}
	s := must(admission.OpenStore(t.Context(), admission.StoreConfig{Ledger: f.ledger, Anchor: f.anchor, Key: key}))
	defer s.Close()

	return admission.Verify(t.Context(), s)
}

// script is what the golden ledger records: each scope, role, reason and state.
var script = []struct {
	stop bool
	t    admission.Transition
}{
	{false, admission.Transition{Scope: admission.Global()}},
	{true, admission.Transition{Scope: workflow("workflow:org.example/refunds@1.0.0"), Reason: admission.Maintenance, Role: admission.Operator}},
	{false, admission.Transition{Scope: workflow("workflow:org.example/billing"), Role: admission.IncidentCommander}},
	{true, admission.Transition{Scope: admission.Global()}},
	{true, admission.Transition{Scope: admission.Global()}},
	{false, admission.Transition{Scope: admission.Global()}},
	{false, admission.Transition{Scope: workflow("workflow:org.example/refunds@1.0.0")}},
	{true, admission.Transition{Scope: workflow("workflow:org.example/billing")}},
}

func workflow(id string) admission.Scope { return admission.Workflow(ident.MustWorkflowID(id)) }

func write(t *testing.T, f files) {
	t.Helper()
	at := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { at = at.Add(time.Minute); return at }
	try(os.WriteFile(f.key, []byte(goldenKey), 0o600))
	cfg := admission.StoreConfig{Ledger: f.ledger, Anchor: f.anchor, Key: must(admission.LoadKeyFile(f.key)), Now: clock}
	_ = must(admission.Initialize(t.Context(), cfg))
	s := must(admission.OpenStore(t.Context(), cfg))
	defer s.Close()
	c := must(admission.New(admission.Config{Store: s, Now: clock}))
	for _, step := range script {
		if step.stop {
			_ = must(c.Stop(t.Context(), step.t))
		} else {
			_ = must(c.Enable(t.Context(), step.t))
		}
	}
}

// TestGolden: ledgers of earlier versions keep verifying, by both programs.
func TestGolden(t *testing.T) {
	t.Parallel()
	if *golden {
		dir := filepath.Join("testdata", "golden-v1")
		try(os.RemoveAll(dir))
		try(os.MkdirAll(dir, 0o755))
		temp := in(t.TempDir())
		write(t, temp)
		to := in(dir)
		for from, name := range map[string]string{temp.ledger: to.ledger, temp.anchor: to.anchor, temp.key: to.key} {
			try(os.WriteFile(name, must(os.ReadFile(from)), 0o644))
		}
	}
	for dir, want := range map[string]struct {
		generation int64
		digest     string
	}{
		"golden-v1": {9, "sha256:cad69ad2ec9d650da46c3cb9e04616cad6c399d95a6866254cd5c74904fd6a41"},
	} {
		f := in(filepath.Join("testdata", dir))
		if o := f.independently(t); !o.OK || o.Generation != want.generation || o.Digest != want.digest {
			t.Errorf("%s: %+v", dir, o)
		}
		v, err := f.copied(t).byAdmission(t)
		if err != nil || int64(v.Head.Generation) != want.generation || v.Head.Digest.String() != want.digest {
			t.Errorf("%s: %+v, %v", dir, v, err)
		}
	}
}

// TestToday: what is written now is what was written then, byte for byte of
// every receipt.
func TestToday(t *testing.T) {
	t.Parallel()
	now := in(t.TempDir())
	write(t, now)
	if got, want := documents(now), documents(in(filepath.Join("testdata", "golden-v1"))); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if o := now.independently(t); !o.OK {
		t.Errorf("%+v", o)
	}
}

func documents(f files) string {
	db := must(open(f.ledger))
	defer db.Close()
	rows := must(db.Query("SELECT document FROM receipts ORDER BY generation"))
	defer rows.Close()
	var all strings.Builder
	for rows.Next() {
		var document string
		try(rows.Scan(&document))
		all.WriteString(document + "\n")
	}
	try(rows.Err())

	return all.String()
}

// TestTampered: both programs see the same, and blame the same receipt.
func TestTampered(t *testing.T) {
	t.Parallel()
	field := func(generation, from, to string) string {
		return `UPDATE receipts SET document = replace(document, '` + from + `', '` + to + `') WHERE generation = ` + generation
	}
	for name, tc := range map[string]struct {
		ledger, anchor string
		bad            int64
	}{
		"generation":     {ledger: field("4", `"generation":4`, `"generation":5`), bad: 4},
		"previous":       {ledger: field("4", `"previous_digest":"sha256:`, `"previous_digest":"sha256:0`), bad: 4},
		"reason":         {ledger: field("5", `emergency_stop`, `maintenance`), bad: 5},
		"role":           {ledger: field("4", `incident_commander`, `operator`), bad: 4},
		"schema version": {ledger: field("2", `admission.v1`, `admission.v2`), bad: 2},
		"scope":          {ledger: field("3", `workflow:org.example/refunds@1.0.0`, `global`), bad: 3},
		"signature":      {ledger: field("6", `"signature":"hmac-sha256:`, `"signature":"hmac-sha512:`), bad: 6},
		"state":          {ledger: field("9", `"stopped"`, `"enabled"`), bad: 9},
		"time":           {ledger: field("7", `"time":1`, `"time":2`), bad: 7},
		"a space":        {ledger: field("7", `,"time"`, `, "time"`), bad: 7},
		"a field more":   {ledger: field("7", `{"generation"`, `{"actor":"x","generation"`), bad: 7},
		"a key twice":    {ledger: field("7", `{"generation":7`, `{"generation":7,"generation":7`), bad: 7},
		"deep":           {ledger: field("7", `"time":`, `"time":`+strings.Repeat("[", 5000)), bad: 7},
		"too long":       {ledger: `UPDATE receipts SET document = document || printf('%20000s', '') WHERE generation = 8`, bad: 8},
		"missing":        {ledger: `DELETE FROM receipts WHERE generation = 5`, bad: 5},
		"the last":       {ledger: `DELETE FROM receipts WHERE generation = 9`, bad: 9},
		"a copy at the end": {
			ledger: `INSERT INTO receipts SELECT 10, document FROM receipts WHERE generation = 9`, bad: 10,
		},
		"swapped":           {ledger: `UPDATE receipts SET document = (SELECT document FROM receipts WHERE generation = 5) WHERE generation = 6`, bad: 6},
		"empty":             {ledger: `DELETE FROM receipts`, bad: 1},
		"anchor":            {anchor: `UPDATE head SET generation = 8`},
		"anchor's digest":   {anchor: `UPDATE head SET digest = replace(digest, 'sha256:', 'sha256:0')`},
		"without anchor":    {anchor: `DELETE FROM head`},
		"a foreign index":   {ledger: `CREATE INDEX x ON receipts(document)`},
		"a foreign trigger": {ledger: `CREATE TRIGGER x AFTER INSERT ON receipts BEGIN DELETE FROM receipts; END`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := in(filepath.Join("testdata", "golden-v1")).copied(t)
			for path, statement := range map[string]string{f.ledger: tc.ledger, f.anchor: tc.anchor} {
				if statement != "" {
					db := must(sql.Open("sqlite", path))
					_ = must(db.Exec(statement))
					try(db.Close())
				}
			}
			if o := f.independently(t); o.OK || o.FirstBad != tc.bad {
				t.Errorf("independently: %+v, want %d", o, tc.bad)
			}
			if v, err := f.byAdmission(t); err == nil || int64(v.FirstBad) != tc.bad {
				t.Errorf("by admission: %+v, %v, want %d", v, err, tc.bad)
			}
		})
	}
}

// TestOtherKey: nothing verifies under another key, or without one.
func TestOtherKey(t *testing.T) {
	t.Parallel()
	f := in(filepath.Join("testdata", "golden-v1")).copied(t)
	try(os.WriteFile(f.key, []byte(goldenKey+"."), 0o600))
	if o := f.independently(t); o.OK || o.FirstBad != 1 {
		t.Errorf("%+v", o)
	}
	if v, err := f.byAdmission(t); err == nil || v.Head.Generation != 0 { // it looks at the anchor first
		t.Errorf("%+v, %v", v, err)
	}
	var stdout bytes.Buffer
	for _, args := range [][]string{nil, {f.ledger}, {f.ledger, f.anchor, f.key + ".none"}, {f.ledger + ".none", f.anchor, f.key}} {
		if code := run(args, &stdout); code != 1 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
