package admission_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
)

// golden is a receipt of generation 1 as any other program has to read it.
const golden = `{"generation":1,"previous_digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000",` +
	`"reason_code":"initialized","role":"operator","schema_version":"interlock.effect_admission.v1","scope":"global",` +
	`"signature":"hmac-sha256:SIG","state":"disabled","time":1800000000}`

// hmacHex signs without the package under test.
func hmacHex(seed byte, message []byte) string {
	mac := hmac.New(sha256.New, append(bytes.Repeat([]byte{seed}, 31), seed+1))
	mac.Write(message)

	return hex.EncodeToString(mac.Sum(nil))
}

func first() admission.Receipt {
	return admission.Receipt{
		Generation: 1, Scope: global, State: admission.Disabled, Role: admission.Operator,
		Reason: admission.Initialized, Time: at().Unix(),
	}
}

func TestReceiptForm(t *testing.T) {
	t.Parallel()
	key := testKey(t, 'k')
	r := must(key.Sign(first()))
	var fields map[string]any
	if err := json.Unmarshal(r.Document(), &fields); err != nil {
		t.Fatal(err)
	}
	sig := strings.TrimPrefix(fields["signature"].(string), "hmac-sha256:")
	if got, want := string(r.Document()), strings.Replace(golden, "SIG", sig, 1); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// The signature is over the same form without itself.
	delete(fields, "signature")
	fields["time"], fields["generation"] = json.Number("1800000000"), json.Number("1")
	unsigned, _ := json.Marshal(fields)
	if want := hmacHex('k', unsigned); sig != want {
		t.Errorf("signature %s, want %s", sig, want)
	}
	if r.Digest() != ident.DigestOf(r.Document()) || !key.Verify(r) || testKey(t, 'x').Verify(r) || (admission.Key{}).Verify(r) {
		t.Error("digest or verification")
	}
	parsed, err := admission.ParseReceipt(string(r.Document()))
	if err != nil || parsed != r {
		t.Errorf("%+v, %v", parsed, err)
	}
	r.Time++
	if key.Verify(r) {
		t.Error("a changed receipt verifies")
	}
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	key := testKey(t, 'k')
	for name, change := range map[string]func(r *admission.Receipt){
		"no generation":  func(r *admission.Receipt) { r.Generation = 0 },
		"too many":       func(r *admission.Receipt) { r.Generation = math.MaxInt64 + 1 },
		"before 1970":    func(r *admission.Receipt) { r.Time = -1 },
		"no scope":       func(r *admission.Receipt) { r.Scope = admission.Scope{} },
		"no state":       func(r *admission.Receipt) { r.State = 0 },
		"unknown state":  func(r *admission.Receipt) { r.State = 4 },
		"no role":        func(r *admission.Receipt) { r.Role = 0 },
		"unknown reason": func(r *admission.Receipt) { r.Reason = 5 },
	} {
		r := first()
		change(&r)
		if _, err := key.Sign(r); !errors.Is(err, admission.ErrInvalidTransition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := admission.Key{}.Sign(first())
	wantErr(t, err, admission.ErrInvalidKey)
}

func TestParseReceiptRefuses(t *testing.T) {
	t.Parallel()
	good := strings.Replace(golden, "SIG", strings.Repeat("0f", 32), 1)
	if _, err := admission.ParseReceipt(good); err != nil {
		t.Fatal(err)
	}
	swap := func(old, other string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %s", old)
		}

		return strings.Replace(good, old, other, 1)
	}
	for name, doc := range map[string]string{
		"empty":            "",
		"other json":       "{}",
		"space":            swap(`,"role"`, `, "role"`),
		"newline after":    good + "\n",
		"two":              good + good,
		"cut":              good[:len(good)-1],
		"order":            swap(`"generation":1,`, ``),
		"double key":       swap(`"role":"operator"`, `"role":"operator","role":"operator"`),
		"unknown key":      swap(`"role"`, `"extra":1,"role"`),
		"deep":             swap(`"operator"`, `{"a":{"b":1}}`),
		"escape":           swap(`operator`, `\u006fperator`),
		"other role":       swap(`operator`, `root`),
		"zero role":        swap(`operator`, `invalid`),
		"empty role":       swap(`operator`, ``),
		"other state":      swap(`disabled`, `open`),
		"other reason":     swap(`initialized`, `because`),
		"other schema":     swap(`admission.v1`, `admission.v2`),
		"other scope":      swap(`global`, `everything`),
		"scope with NUL":   swap(`global`, "global\x00"),
		"run as scope":     swap(`global`, `run_0123456789abcdef0123456789abcdef`),
		"generation 0":     swap(`"generation":1`, `"generation":0`),
		"leading zero":     swap(`"generation":1`, `"generation":01`),
		"sign":             swap(`"generation":1`, `"generation":+1`),
		"exponent":         swap(`1800000000`, `18e8`),
		"fraction":         swap(`1800000000`, `1800000000.0`),
		"negative time":    swap(`1800000000`, `-1`),
		"time too large":   swap(`1800000000`, `9223372036854775808`),
		"generation 2^63":  swap(`"generation":1`, `"generation":9223372036854775808`),
		"number as text":   swap(`1800000000`, `"1800000000"`),
		"null":             swap(`"global"`, `null`),
		"upper hex":        swap(`0f`, `0F`),
		"short signature":  swap(`0f`, ``),
		"other algorithm":  swap(`hmac-sha256`, `hmac-sha512`),
		"other digest":     swap(`sha256:00`, `sha256:0g`),
		"byte order mark":  "\ufeff" + good,
		"oversize":         good + strings.Repeat(" ", 20_000),
		"trailing garbage": good[:len(good)-1] + `,"x":1}`,
	} {
		if _, err := admission.ParseReceipt(doc); !errors.Is(err, admission.ErrUntrustedState) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseReceipt(f *testing.F) {
	key := testKey(f, 'k')
	f.Add(string(must(key.Sign(first())).Document()))
	f.Add(strings.Replace(golden, "SIG", strings.Repeat("0f", 32), 1))
	f.Add(string(must(key.Sign(admission.Receipt{
		Generation: math.MaxInt64, Previous: ident.DigestOf(nil), Scope: admission.Workflow(refunds), State: admission.Stopped,
		Role: admission.IncidentCommander, Reason: admission.Maintenance, Time: math.MaxInt64,
	})).Document()))
	f.Add(`{"generation":1,"generation":2}`)
	f.Add("{")
	f.Fuzz(func(t *testing.T, doc string) {
		r, err := admission.ParseReceipt(doc)
		if err != nil {
			if !errors.Is(err, admission.ErrUntrustedState) || err.Error() != "interlock: admission: untrusted_state" {
				t.Error(err)
			}

			return
		}
		if string(r.Document()) != doc {
			t.Errorf("%q is read, and written as %q", doc, r.Document())
		}
		var fields map[string]any
		if err := json.Unmarshal([]byte(doc), &fields); err != nil || len(fields) != 9 {
			t.Errorf("not JSON of nine fields: %q", doc)
		}
	})
}

func FuzzParseScope(f *testing.F) {
	for _, s := range []string{"global", "", "invalid", refunds.String(), "workflow:", "Global", "global\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := admission.ParseScope(text)
		if (err == nil) == s.IsZero() || err == nil && s.String() != text {
			t.Errorf("%q is %q, %v", text, s, err)
		}
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, r := range []admission.Role{admission.Operator, admission.IncidentCommander} {
		if got, err := admission.ParseRole(r.String()); err != nil || got != r {
			t.Error(r, err)
		}
	}
	for _, r := range []admission.TransitionReason{admission.Initialized, admission.ExplicitEnable, admission.EmergencyStop, admission.Maintenance} {
		if got, err := admission.ParseTransitionReason(r.String()); err != nil || got != r {
			t.Error(r, err)
		}
	}
	for _, s := range []string{"", "invalid", "Operator", "canary"} {
		_, err := admission.ParseRole(s)
		wantErr(t, err, admission.ErrInvalidControlMetadata)
		_, err = admission.ParseTransitionReason(s)
		wantErr(t, err, admission.ErrInvalidControlMetadata)
		_, err = admission.ParseScope(s)
		wantErr(t, err, admission.ErrInvalidScope)
	}
	for _, got := range []string{
		admission.State(0).String(), admission.State(9).String(), admission.Role(0).String(), admission.Role(9).String(),
		admission.TransitionReason(0).String(), admission.Scope{}.String(), admission.Workflow(ident.WorkflowID{}).String(),
	} {
		if got != "invalid" {
			t.Error(got)
		}
	}
	if !global.IsGlobal() || admission.Workflow(refunds).IsGlobal() || admission.Workflow(refunds).WorkflowID() != refunds || !global.WorkflowID().IsZero() {
		t.Error("scope")
	}
	if admission.Code(nil) != "" || admission.Code(errors.New("canary")) != "" || admission.Code(admission.ErrStopped) != "admission_stopped" {
		t.Error("code")
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	varied := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)
		}

		return b
	}
	for name, tc := range map[string]struct {
		b  []byte
		ok bool
	}{
		"nil":       {nil, false},
		"31":        {varied(31), false},
		"32":        {varied(32), true},
		"4096":      {varied(4096), true},
		"4097":      {varied(4097), false},
		"all equal": {[]byte(strings.Repeat("a", 64)), false},
		"all zero":  {make([]byte, 32), false},
	} {
		k, err := admission.ParseKey(tc.b)
		if (err == nil) != tc.ok || k.IsZero() == tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			wantErr(t, err, admission.ErrInvalidKey)
		}
	}
	b := varied(32)
	k := must(admission.ParseKey(b))
	r := must(k.Sign(first()))
	b[0] = 99
	if !k.Verify(r) {
		t.Error("the key is not a copy")
	}
}

// TestKeyRedacted: in every form, also inside of structures that fmt looks into
// without asking.
func TestKeyRedacted(t *testing.T) {
	t.Parallel()
	secret := "canarycanarycanarycanarycanary-32"
	k := must(admission.ParseKey([]byte(secret)))
	type holder struct{ k admission.Key }
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", k)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", k)
	text, _ := k.MarshalText()
	js, _ := json.Marshal(map[string]any{"k": k})
	forms := []string{log.String(), string(text), string(js), k.String(), k.GoString()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%t", "%p"} {
		got := fmt.Sprintf(verb, k)
		if got != "redacted" && verb != "%p" { // %p prints an address and asks nobody
			t.Errorf("%s: %s", verb, got)
		}
		forms = append(forms, fmt.Sprintf(verb, holder{k}), fmt.Sprintf(verb, &holder{k}), fmt.Sprintf(verb, []admission.Key{k}), fmt.Sprintf(verb, admission.StoreConfig{Key: k}))
	}
	for _, f := range forms {
		lower := strings.ToLower(f)
		for _, leak := range []string{"canary", fmt.Sprintf("%x", secret)[:16], "99 97 110 97 114 121", "1100011 1100001"} {
			if strings.Contains(lower, leak) {
				t.Errorf("%q in %s", leak, f)
			}
		}
	}
	if !strings.Contains(log.String(), "key=redacted") || !strings.Contains(string(js), `"redacted"`) {
		t.Errorf("%s %s", log.String(), js)
	}
}
