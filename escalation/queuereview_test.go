package escalation_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

func goldenReview(tb testing.TB, d escalation.ReviewDecision) string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "review_"+d.String()+".json"))
	if err != nil {
		tb.Fatal(err)
	}

	return string(data)
}

// What each class offers, spelled out once more.
var offers = map[escalation.Class][]string{
	uncertainty: {"review_evidence", "abort_run", "dismissed"},
	permission:  {"recheck_permissions", "abort_run", "dismissed"},
	toolFailure: {"review_tool_failure", "abort_run", "dismissed"},
}

func offered(c escalation.Class, decision string) bool {
	return slices.Contains(offers[c], decision)
}

func TestReviewDecisions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{"invalid": true}
	for _, d := range escalation.ReviewDecisions() {
		if seen[d.String()] {
			t.Errorf("decision %d is called %v", d, d)
		}
		seen[d.String()] = true
		if got, err := escalation.ParseReviewDecision(d.String()); err != nil || got != d {
			t.Errorf("%v came back as %v, %v", d, got, err)
		}
		for class := range offers {
			if d.Fits(class) != offered(class, d.String()) {
				t.Errorf("%v fits %v: %v", d, class, d.Fits(class))
			}
		}
		if d.Fits(0) || d.Fits(200) {
			t.Errorf("%v fits no class", d)
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d decisions", len(seen)-1)
	}
	for _, d := range []escalation.ReviewDecision{0, escalation.ReviewDismissed + 1, 255} {
		if d.String() != "invalid" || d.Fits(toolFailure) {
			t.Errorf("decision %d is %v", uint8(d), d)
		}
	}
	for _, code := range []string{"", "invalid", "Dismissed", "dismissed ", "resume_run", "approve", secret} {
		d, err := escalation.ParseReviewDecision(code)
		if d != 0 || middleware.ReasonOf(err) != middleware.ReasonInvalidDecision {
			t.Errorf("%q is %v, %v", code, d, err)
		}
		contentFree(t, err)
	}
}

func TestReviewRoundTrip(t *testing.T) {
	t.Parallel()
	for _, d := range escalation.ReviewDecisions() {
		data := goldenReview(t, d)
		r, err := escalation.ParseReview([]byte(data))
		if err != nil {
			t.Fatalf("%v: %v", d, err)
		}
		again, err := json.Marshal(r)
		if err != nil || string(again) != data {
			t.Errorf("%v renders as %s, %v", d, again, err)
		}
		if r.IsZero() || r.Decision() != d || r.Reviewer().String() != "night-desk" || r.DecidedAt() != at.Add(10*time.Minute) ||
			!strings.Contains(data, r.Handoff().String()) {
			t.Errorf("%v: the round trip changed it", d)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			if s := fmt.Sprintf(verb, r); s != "escalation.Review("+d.String()+")" {
				t.Errorf("%s: %s", verb, s)
			}
		}
	}
}

func TestReviewZero(t *testing.T) {
	t.Parallel()
	var r escalation.Review
	if _, err := r.MarshalJSON(); !errors.Is(err, escalation.ErrInvalidHandoff) || !r.IsZero() {
		t.Errorf("%v, %v", r, err)
	}
	if err := json.Unmarshal([]byte(goldenReview(t, escalation.ReviewDismissed)), &r); err == nil || !r.IsZero() {
		t.Errorf("json.Unmarshal made a review: %v", err)
	}
}

func TestParseReviewDefects(t *testing.T) {
	t.Parallel()
	good := goldenReview(t, escalation.ReviewDismissed)
	swap := func(old, replacement string) string {
		t.Helper()
		if strings.Count(good, old) != 1 {
			t.Fatalf("%q is not once in the golden file", old)
		}

		return strings.Replace(good, old, replacement, 1)
	}
	for name, c := range map[string]struct {
		data string
		want escalation.Defect
	}{
		"empty":               {"", escalation.DefectMalformed},
		"cut":                 {good[:len(good)-1], escalation.DefectMalformed},
		"list":                {"[]", escalation.DefectMalformed},
		"oversize":            {good + strings.Repeat(" ", escalation.MaxHandoffBytes), escalation.DefectOversize},
		"handoff":             {golden(t, toolFailure), escalation.DefectUnknownField},
		"free text":           {swap(`"reviewer"`, `"note":"x","reviewer"`), escalation.DefectUnknownField},
		"field in other case": {swap(`"reviewer"`, `"Reviewer"`), escalation.DefectUnknownField},
		"missing field":       {swap(`"decision":"dismissed",`, ``), escalation.DefectMissingField},
		"duplicate field":     {swap(`"decision":"dismissed",`, `"decision":"dismissed","decision":"dismissed",`), escalation.DefectDuplicateField},
		"newline behind":      {good + "\n", escalation.DefectTrailingData},
		"space before":        {" " + good, escalation.DefectNotCanonical},
		"space inside":        {swap(`"decision":`, `"decision": `), escalation.DefectNotCanonical},
		"escaped":             {swap(`"dismissed"`, `"\u0064ismissed"`), escalation.DefectNotCanonical},
		"other order":         {swap(`"decision":"dismissed",`, ``)[:len(good)-len(`"decision":"dismissed",`)-1] + `,"decision":"dismissed"}`, escalation.DefectNotCanonical},
		"schema":              {swap(`handoff_review.v1`, `handoff_review.v2`), escalation.DefectInvalidValue},
		"unknown decision":    {swap(`"dismissed"`, `"resume_run"`), escalation.DefectInvalidValue},
		"no decision":         {swap(`"dismissed"`, `""`), escalation.DefectInvalidValue},
		"number":              {swap(`"dismissed"`, `5`), escalation.DefectInvalidValue},
		"null":                {swap(`"dismissed"`, `null`), escalation.DefectInvalidValue},
		"bare digest":         {swap(`"sha256:`, `"`), escalation.DefectInvalidValue},
		"reviewer":            {swap(`night-desk`, `Night Desk`), escalation.DefectInvalidValue},
		"model reviewer":      {swap(`night-desk`, `night/desk`), escalation.DefectInvalidValue},
		"no reviewer":         {swap(`night-desk`, ``), escalation.DefectInvalidValue},
		"fraction":            {swap(`05:16:07Z`, `05:16:07.5Z`), escalation.DefectInvalidValue},
		"zone":                {swap(`05:16:07Z`, `05:16:07+00:00`), escalation.DefectInvalidValue},
		"year 0":              {swap(`2026-`, `0000-`), escalation.DefectInvalidValue},
	} {
		r, err := escalation.ParseReview([]byte(c.data))
		e, ok := errors.AsType[*escalation.HandoffError](err)
		if !ok || e.Defect() != c.want || !r.IsZero() {
			t.Errorf("%s: %v, %v; want %v", name, r, err, c.want)
		}
	}
}

// Whatever parses is exactly what the parsed value renders as.
func FuzzParseReview(f *testing.F) {
	for _, d := range escalation.ReviewDecisions() {
		f.Add([]byte(goldenReview(f, d)))
	}
	f.Add([]byte(golden(f, toolFailure)))
	f.Add([]byte(`{"decided_at":"","decided_at":""}`))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := escalation.ParseReview(data)
		if err != nil {
			e, ok := errors.AsType[*escalation.HandoffError](err)
			if !ok || e.Defect() == 0 || !r.IsZero() {
				t.Fatalf("%v, %v", r, err)
			}

			return
		}
		if again, err := r.MarshalJSON(); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("renders as %s, %v", again, err)
		}
		known := false
		for _, d := range escalation.ReviewDecisions() {
			known = known || d == r.Decision()
		}
		if !known || r.Reviewer().IsZero() || r.DecidedAt().IsZero() || r.DecidedAt().Nanosecond() != 0 {
			t.Error("outside of its sets")
		}
	})
}
