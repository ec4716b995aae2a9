package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// stage plays calls that are written as lines: the effect class (r, e, i, p), the
// tool, its arguments, "=", and what it gives: a result, an error behind "!", a
// failure of a provider behind "~", or a final state behind "$".
type stage struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // of the run that the test plays
	run   *middleware.Run
	tools map[string]*middleware.GuardedTool
	dog   *watchdog.Watchdog
	given string

	n     int
	fired []string // "call:reason"
}

func newStage(t *testing.T, cfg watchdog.Config, action watchdog.Action) *stage {
	t.Helper()
	s := &stage{t: t, tools: map[string]*middleware.GuardedTool{}}
	cfg.DisableStall = true
	cfg.Policy = func(d watchdog.Detection) watchdog.Action {
		s.fired = append(s.fired, fmt.Sprintf("%d:%s", s.n, strings.TrimPrefix(d.Reason.Error(), "interlock: ")))

		return action
	}
	s.dog = newDog(t, cfg)
	ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/test"), Receivers: []middleware.SignalReceiver{s.dog},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.End() })
	s.ctx, s.run = ctx, run

	return s
}

func (s *stage) call(line string) error {
	s.t.Helper()
	head, given, ok := strings.Cut(line, "=")
	name, args, _ := strings.Cut(strings.TrimSpace(head), " ")
	if !ok || len(name) < 2 {
		s.t.Fatalf("cannot play %q", line)
	}
	tool := s.tools[name]
	if tool == nil {
		effect := map[byte]middleware.Effect{
			'r': middleware.ReadOnly, 'e': middleware.Effectful, 'i': middleware.Idempotent, 'p': middleware.Polling,
		}[name[0]]
		tool = toolOf(s.t, name[1:], effect, s.answer, s.dog.Tool())
		s.tools[name] = tool
	}
	s.given = strings.TrimSpace(given)
	s.n++
	_, err := tool.Do(s.ctx, "id"+strconv.Itoa(s.n), args)

	return err
}

func (s *stage) answer(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
	switch text := s.given; {
	case strings.HasPrefix(text, "!"):
		return nil, errors.New(text[1:])
	case strings.HasPrefix(text, "~"):
		return nil, middleware.NewFailure(middleware.ComponentFallback, middleware.ReasonOverloaded, ident.Label{})
	case strings.HasPrefix(text, "$"):
		return &middleware.ToolResult{Output: text[1:], Final: true}, nil
	default:
		return &middleware.ToolResult{Output: text}, nil
	}
}

// times repeats lines; # in them is the number of the round.
func times(n int, lines ...string) []string {
	var all []string
	for i := range n {
		for _, line := range lines {
			all = append(all, strings.ReplaceAll(line, "#", strconv.Itoa(i+101)))
		}
	}

	return all
}

func join(parts ...[]string) []string {
	var all []string
	for _, p := range parts {
		all = append(all, p...)
	}

	return all
}

// TestProgress plays runs that only observe, and says at which call the detector
// fired, and why.
func TestProgress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		calls []string
		want  string
	}{
		"an effect three times":       {times(6, `epay {"a":1} = paid`), "4:loop"},
		"an idempotent one four":      {times(6, `iput {"a":1} = put`), "5:loop"},
		"a read five":                 {times(8, `rget {"a":1} = one`), "6:loop"},
		"a failure four":              {times(8, `rget {"a":1} = !no such thing`), "5:loop"},
		"a failure as text":           {times(8, `rget {"a":1} = error: no such thing`), "5:loop"},
		"none of it is enough":        {join(times(3, `epay {"a":1} = paid`), times(5, `rget {"a":1} = one`)), ""},
		"spelling":                    {times(3, `rget {"a":1} = one`, `rget { "a": 1.0 } = one`), "6:loop"},
		"clocks":                      {times(6, `rget x = at 10:00:0# one`), ""}, // no clock
		"volatile":                    {[]string{`rget x = 10:00:01 a`, `rget x = 10:00:02 a`, `rget x = 10:00:03 a`, `rget x = 10:00:04 a`, `rget x = 10:00:05 a`, `rget x = 10:00:06 a`}, "6:loop"},
		"numbers are results":         {times(9, `rget x = # rows`), ""},
		"news between":                {times(9, `rget x = a`, `rsearch q# = hit #`), ""},
		"an effect between":           {times(9, `rtest x = ok`, `ewrite {"c":"c#"} = done`), ""},
		"the same effect is none":     {times(9, `rtest x = ok`, `ewrite c = done`), "7:cycle"},
		"two in turn":                 {times(9, `rget x = a`, `rget y = b`), "7:cycle"},
		"three in turn":               {times(9, `rget x = a`, `rget y = b`, `rget z = c`), "10:cycle"},
		"eight in turn":               {times(4, `ra x = 1`, `rb x = 2`, `rc x = 3`, `rd x = 4`, `re x = 5`, `rf x = 6`, `rg x = 7`, `rh x = 8`), "24:fuse"},
		"one of three is other":       {times(9, `rget x = a`, `rget y = b`, `rlook q# = c`), "10:cycle"},
		"out of order":                {join(times(2, `rget x = a`, `rget y = b`, `rget z = c`), times(4, `rget y = b`, `rget x = a`, `rget z = c`)), "10:cycle"},
		"swaps":                       {[]string{`rget x = a`, `rget y = b`, `rget z = c`, `rget x = a`, `rget x = a`, `rget z = c`, `rget y = b`, `rget y = b`, `rget z = c`, `rget x = a`, `rget x = a`}, "11:cycle"},
		"in no order":                 {[]string{`rget x = a`, `rget y = b`, `rget z = c`, `rget y = b`, `rget y = b`, `rget x = a`, `rget x = a`, `rget z = c`, `rget z = c`, `rget y = b`, `rget x = a`, `rget y = b`, `rget z = c`}, "13:cycle"},
		"guesses":                     {times(12, `rsearch {"q":"w#"} = nothing`), "9:drift"},
		"guesses that fail":           {times(12, `rsearch {"q":"w#"} = !nothing for w#`), "9:drift"},
		"guesses at an effect":        {times(12, `eopen {"key":"w#"} = !wrong key`), "7:drift"},
		"a list that was shown":       {join([]string{`rlist x = w101 w102 w103 w104 w105 w106 w107 w108 w109 w110 w111 w112`}, times(12, `rsearch {"q":"w#"} = nothing`)), ""},
		"a list that counts itself":   {times(14, `rpage {"page":#} = page # of 200: nothing`), ""},
		"past its end":                {times(14, `rpage {"page":#} = page # of 50: nothing`), "9:drift"},
		"effects on other things":     {times(40, `esend {"to":"w#"} = sent`), ""},
		"effects that do nothing":     {times(12, `esend {"to":"w#"} = error: not sent`), "7:drift"},
		"the same failing check":      {times(12, `ewrite {"c":"v#"} = done`, `etest x = FAIL: want 2`), "18:stagnation"},
		"a failing check that moves":  {times(12, `ewrite {"c":"v#"} = done`, `etest x = FAIL: want #`), ""},
		"a check that passes":         {times(12, `ewrite {"c":"v#"} = done`, `rtest x = ok, 0 failed`), ""},
		"a declared poll":             {times(15, `pstate x = pending`), "14:waiting"},
		"a poll that ends":            {join(times(12, `pstate x = pending`), times(1, `pstate x = done`), times(9, `pstate x = pending`)), ""},
		"after the end":               {join(times(9, `pstate x = pending`), times(7, `pstate x = $done`)), "15:loop"},
		"checks with waits between":   {times(15, `rstate x = pending`, `rsleep 30 = slept`), "27:waiting"},
		"a shell that waits":          {times(15, `rstate x = pending`, `ebash sleep 30 =`), "27:waiting"},
		"a shell that waits first":    {times(15, `ebash {"cmd":"sleep 5 && curl -s host"} = !refused`), "14:waiting"},
		"no shell":                    {times(8, `rsearch sleep = a`), "6:loop"},
		"a provider that is down":     {times(40, `rask x = ~`), ""},
		"a loop between its failures": {times(8, `rget x = a`, `rask x = ~`), "11:loop"},
		"rotating tools": {join(times(2, `ra x = 1`, `rb x = 2`, `rc x = 3`, `rd x = 4`, `re x = 5`, `rf x = 6`, `rg x = 7`, `rh x = 8`, `ri x = 9`, `rj x = 10`), times(9, `ra y# = 1`)),
			"26:fuse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, watchdog.Config{}, watchdog.Observe)
			for _, line := range tc.calls {
				_ = s.call(line)
			}
			if got := strings.Join(s.fired, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestProgressAfterANudge: what was refused fires again at its next call, and
// another way is free.
func TestProgressAfterANudge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		calls []string
		want  string
	}{
		"the same again":          {times(9, `rget x = a`), "6:loop 7:loop 8:loop 9:loop"},
		"another way":             {join(times(6, `rget x = a`), times(3, `rget y = b`), times(4, `rget x = a`)), "6:loop"},
		"stubborn all the same":   {join(times(6, `rget x = a`), times(3, `rget y = a`), times(2, `rget x = a`)), "6:loop 10:loop 11:loop"},
		"the fuse leaves a way":   {join(times(3, `ra x = 1`, `rb x = 2`, `rc x = 3`, `rd x = 4`, `re x = 5`, `rf x = 6`, `rg x = 7`, `rh x = 8`, `ri x = 9`, `rj x = 9`)[:27], times(6, `rz w# = none`), times(1, `ra x = 1`)), "26:fuse 27:fuse"},
		"a new call is tried":     {join(times(2, `ra x = 1`, `rb x = 2`, `rc x = 3`, `rd x = 4`, `re x = 5`, `rf x = 6`, `rg x = 7`, `rh x = 8`, `ri x = 9`), times(1, `rj x = 1`, `rj y = 1`)), ""},
		"stagnation, once a call": {times(11, `ewrite {"c":"v#"} = done`, `etest x = FAIL`), "18:stagnation 20:stagnation 22:stagnation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, watchdog.Config{}, watchdog.Nudge)
			for i, line := range tc.calls {
				before := len(s.fired)
				if err := s.call(line); (err != nil) != (len(s.fired) > before) && !strings.Contains(line, "!") {
					t.Errorf("call %d: fired %v, error %v", i+1, s.fired, err)
				}
			}
			if got := strings.Join(s.fired, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestProgressSignal: a signal that rises is news, one that stands still is not.
func TestProgressSignal(t *testing.T) {
	t.Parallel()
	s := newStage(t, watchdog.Config{}, watchdog.Observe)
	for i := range 12 {
		middleware.Report(s.ctx, middleware.Signal{Kind: middleware.SignalProgress, Value: float64(i / 3)})
		_ = s.call(`rget x = a`)
	}
	if len(s.fired) > 0 {
		t.Errorf("the signal rises: %v", s.fired)
	}
	for range 6 {
		middleware.Report(s.ctx, middleware.Signal{Kind: middleware.SignalProgress, Value: 1})
		_ = s.call(`rget x = a`)
	}
	if got := strings.Join(s.fired, " "); got != "15:loop" {
		t.Errorf("the signal stands still: %v", s.fired)
	}
}

// TestParallelCalls: the calls of one turn are one step, in any order.
func TestParallelCalls(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		turns [][]string
		want  string
	}{
		"a set three times": {[][]string{
			{`ra x = 1`, `rb x = 2`, `rc x = 3`}, {`rc x = 3`, `ra x = 1`, `rb x = 2`}, {`rb x = 2`, `rc x = 3`, `ra x = 1`},
			{`rb x = 2`, `ra x = 1`, `rc x = 3`},
		}, "10:cycle"},
		"twice in one turn":   {[][]string{times(8, `ra x = 1`), times(8, `ra x = 1`)}, ""},
		"effects in one turn": {[][]string{times(6, `epay x = paid`)}, "4:loop"},
		"many in one turn":    {[][]string{times(30, `ra {"q":"w#"} = none`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, watchdog.Config{}, watchdog.Observe)
			for _, turn := range tc.turns {
				openTurn(s.ctx, t)
				for _, line := range turn {
					_ = s.call(line)
				}
			}
			if got := strings.Join(s.fired, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestConcurrentEffects: equal effects at once are not made more often than in a
// row.
func TestConcurrentEffects(t *testing.T) {
	t.Parallel()
	dog := newDog(t, watchdog.Config{Policy: always(watchdog.Nudge)})
	enter, leave := make(chan struct{}, 8), make(chan struct{})
	tool := toolOf(t, "pay", middleware.Effectful, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		enter <- struct{}{}
		<-leave

		return &middleware.ToolResult{Output: "paid"}, nil
	}, dog.Tool())
	ctx, _ := startRun(t.Context(), t)
	done := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := tool.Do(ctx, "", "same")
			done <- err
		}()
		<-enter
	}
	if _, err := tool.Do(ctx, "", "same"); !errors.Is(err, middleware.ReasonLoop) {
		t.Errorf("the fourth at once: got %v", err)
	}
	close(leave)
	for range 3 {
		if err := <-done; err != nil {
			t.Errorf("got %v", err)
		}
	}
}

// TestEventsOutOfOrder: an end without a beginning, and a second one, change
// nothing and are counted.
func TestEventsOutOfOrder(t *testing.T) {
	t.Parallel()
	dog := newDog(t, watchdog.Config{})
	var kept *middleware.ToolCall
	tool := toolOf(t, "lookup", middleware.ReadOnly, func(_ context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		kept = c

		return &middleware.ToolResult{}, nil
	}, dog.Tool())
	ctx, run := startRun(t.Context(), t)
	if _, err := tool.Do(ctx, "", "x"); err != nil {
		t.Fatal(err)
	}
	watchdog.LeaveTwice(dog, run, kept)
	if n := dog.Ignored(); n != 2 {
		t.Errorf("%d ignored, want 2", n)
	}
	dog.UnknownTool(t.Context()) // without a run
	dog.ReceiveSignal(ctx, run, middleware.Signal{Kind: middleware.SignalConfidence, Value: 1.5})
	dog.ReceiveSignal(ctx, nil, middleware.Signal{Kind: middleware.SignalConfidence, Value: 1})
	if n := dog.Ignored(); n != 5 {
		t.Errorf("%d ignored, want 5", n)
	}
}
