//go:build linux

package admissionsoak_test

import (
	"bufio"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/admission"
)

// TestKill kills a process that commits, at any moment. What it had been told is
// recorded is recorded, ledger and anchor belong together, and the next check is
// right.
func TestKill(t *testing.T) {
	t.Parallel()
	kills := pick(25, 500)
	dir := newStore(t)
	random := rand.New(rand.NewPCG(6, uint64(os.Getpid())))
	journals, unacknowledged := 0, 0
	var last uint64 = 1
	for kill := range kills {
		p := start(t, "writer", dir)
		lines := bufio.NewScanner(p.raw)
		var generation uint64
		var digest string
		for range 1 + random.IntN(4) {
			if !lines.Scan() {
				t.Fatal("the writer ended by itself")
			}
			generation, digest = acknowledged(lines.Text())
		}
		time.Sleep(time.Duration(random.IntN(30_000)) * time.Microsecond)
		try(p.cmd.Process.Kill())
		for lines.Scan() { // what it could still say counts
			generation, digest = acknowledged(lines.Text())
		}
		p.end()

		if _, err := os.Stat(config(dir).Ledger + "-journal"); err == nil {
			journals++
		}
		// One that cannot recover never takes what is half-done for the state.
		if st := checkerStatus(t, dir); st.Reason.String() != "untrusted_state" && st.Generation < generation {
			t.Errorf("kill %d: a checker sees generation %d, acknowledged %d", kill, st.Generation, generation)
		}
		s := must(admission.OpenStore(t.Context(), config(dir)))
		c := must(admission.New(admission.Config{Store: s}))
		v, err := admission.Verify(t.Context(), s)
		if err != nil {
			t.Fatalf("kill %d: %v, first bad %d, acknowledged %d", kill, err, v.FirstBad, generation)
		}
		if v.Head.Generation < generation || v.Head.Generation > generation+1 || v.Head.Generation <= last {
			t.Fatalf("kill %d: generation %d, acknowledged %d, before %d", kill, v.Head.Generation, generation, last)
		}
		if v.Head.Generation > generation {
			unacknowledged++
		}
		receipts, err := s.Receipts(t.Context(), generation-1, 2)
		if err != nil || receipts[0].Digest().String() != digest {
			t.Fatalf("kill %d: %v, generation %d is not what was acknowledged", kill, err, generation)
		}
		nextCheck(t, kill, c, receipts[len(receipts)-1])
		last = v.Head.Generation
		try(s.Close())
	}
	t.Logf("%d kills, %d left a journal, %d had committed what they could not say any more", kills, journals, unacknowledged)
}

func acknowledged(line string) (generation uint64, digest string) {
	number, digest, _ := strings.Cut(line, " ")

	return must(strconv.ParseUint(number, 10, 64)), digest
}

func checkerStatus(t *testing.T, dir string) admission.Status {
	t.Helper()
	s := must(admission.OpenChecker(t.Context(), config(dir)))
	defer s.Close()

	return must(admission.New(admission.Config{Store: s})).Status(t.Context(), admission.Global())
}

// nextCheck compares checks with what the last receipt says.
func nextCheck(t *testing.T, kill int, c *admission.Controller, last admission.Receipt) {
	t.Helper()
	workflow := refunds
	if last.Scope.IsGlobal() && last.State == admission.Enabled {
		workflow = billing // never recorded itself
	}
	p, err := c.Preview(t.Context(), workflow)
	if err == nil {
		err = c.Check(t.Context(), p)
	}
	want := "ok"
	if last.State == admission.Stopped {
		want = "admission_stopped"
	}
	if code(err) != want || err == nil && p.Generation() != last.Generation {
		t.Fatalf("kill %d: %s after a receipt of %v, want %s", kill, code(err), last.State, want)
	}
}
