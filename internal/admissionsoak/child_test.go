//go:build linux

package admissionsoak_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// soak makes the tests long.
var soak = flag.Bool("soak", false, "run the long versions")

const roleEnv = "INTERLOCK_SOAK_ROLE"

var (
	refunds = ident.MustWorkflowID("workflow:org.example/refunds")
	billing = ident.MustWorkflowID("workflow:org.example/billing")
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		child(role, os.Args[1])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// pick returns how much is done: a little in go test, much with -soak.
func pick(bounded, long int) int {
	if *soak {
		return long
	}

	return bounded
}

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

// now is the same clock in every process.
func now() int64 {
	var t unix.Timespec
	try(unix.ClockGettime(unix.CLOCK_MONOTONIC, &t))

	return t.Nano()
}

// store is where the files of one test lie.
func config(dir string) admission.StoreConfig {
	return admission.StoreConfig{
		Ledger: filepath.Join(dir, "ledger", "ledger.db"), Anchor: filepath.Join(dir, "anchor", "anchor.db"),
		Key: must(admission.ParseKey([]byte("the key of a test, longer than 32 bytes"))),
	}
}

func newStore(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	for _, sub := range []string{"ledger", "anchor"} {
		try(os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	if _, err := admission.Initialize(tb.Context(), config(dir)); err != nil {
		tb.Fatal(err)
	}

	return dir
}

func openController(tb testing.TB, dir string) *admission.Controller {
	tb.Helper()
	s, err := admission.OpenStore(tb.Context(), config(dir))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })

	return must(admission.New(admission.Config{Store: s}))
}

// order is what a child is asked for, and report what it did.
type order struct {
	Op    string // preview, check, status, stop, enable
	Scope string
}

type report struct {
	Start, End int64 // of the operation
	Code       string
	Generation uint64
	Admitted   int64 // start of the last check that was admitted, of the hammering ones too
}

// child is the program that this one executes itself as.
func child(role, dir string) {
	switch role {
	case "agent":
		agent(must(admission.OpenStore(context.Background(), config(dir))))
	case "checker":
		agent(must(admission.OpenChecker(context.Background(), config(dir))))
	case "agent after another database":
		db := must(sql.Open("sqlite", filepath.Join(dir, fmt.Sprintf("another-%d.db", os.Getpid()))))
		_ = must(db.Exec("CREATE TABLE t(x)"))
		agent(must(admission.OpenStore(context.Background(), config(dir))))
	case "agent that closes":
		s := must(admission.OpenStore(context.Background(), config(dir)))
		go openAndClose(config(dir).Ledger)
		go openAndClose(config(dir).Anchor)
		agent(s)
	case "writer":
		writer(dir)
	case "reader":
		reader(config(dir).Ledger)
	default:
		panic(role)
	}
}

// actor is a controller and what it keeps between orders.
type actor struct {
	c        *admission.Controller
	mu       sync.Mutex
	preview  middleware.Preview
	admitted atomic.Int64
}

func (a *actor) do(o order) (r report) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	scope := must(admission.ParseScope(o.Scope))
	r.Start = now()
	defer func() { r.End = now() }()
	transition := admission.Transition{Scope: scope}
	switch o.Op {
	case "preview":
		p, err := a.c.Preview(ctx, scope.WorkflowID())
		a.mu.Lock()
		a.preview = p
		a.mu.Unlock()
		r.Code, r.Generation = code(err), p.Generation()
	case "check":
		a.mu.Lock()
		p := a.preview
		a.mu.Unlock()
		r.Code, r.Generation = a.check(ctx, p), p.Generation()
	case "status":
		st := a.c.Status(ctx, scope)
		r.Code, r.Generation = st.Reason.String(), st.Generation
	case "stop":
		st, err := a.c.Stop(ctx, transition)
		r.Code, r.Generation = code(err), st.Generation
	case "enable":
		st, err := a.c.Enable(ctx, transition)
		r.Code, r.Generation = code(err), st.Generation
	default:
		panic(o.Op)
	}
	r.Admitted = a.admitted.Load()

	return r
}

func (a *actor) check(ctx context.Context, p middleware.Preview) string {
	start := now()
	err := a.c.Check(ctx, p)
	if err == nil {
		for last := a.admitted.Load(); start > last; last = a.admitted.Load() {
			if a.admitted.CompareAndSwap(last, start) {
				break
			}
		}
	}

	return code(err)
}

// hammer checks all the time, so that some check begins at every moment.
func (a *actor) hammer() {
	for {
		a.mu.Lock()
		p := a.preview
		a.mu.Unlock()
		_ = a.check(context.Background(), p)
		time.Sleep(50 * time.Microsecond)
	}
}

func code(err error) string {
	if err == nil {
		return "ok"
	}

	return admission.Code(err)
}

// agent does what it is told, until its input ends.
func agent(s admission.Store) {
	a := &actor{c: must(admission.New(admission.Config{Store: s}))}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := in.Decode(&o); err != nil {
			return
		}
		if o.Op == "hammer" {
			go a.hammer()
			try(out.Encode(report{}))

			continue
		}
		try(out.Encode(a.do(o)))
	}
}

// openAndClose does what drops every POSIX lock that a process has on a file.
func openAndClose(path string) {
	for {
		if f, err := os.Open(path); err == nil {
			_ = f.Close()
		}
		time.Sleep(10 * time.Microsecond)
	}
}

// writer commits until it is killed, and says of each commit that it is done.
func writer(dir string) {
	c := must(admission.New(admission.Config{Store: must(admission.OpenStore(context.Background(), config(dir)))}))
	out := bufio.NewWriter(os.Stdout)
	for i := 0; ; i++ {
		act := c.Stop
		if i%2 == 0 {
			act = c.Enable
		}
		scope := admission.Global()
		if i%5 == 0 {
			scope = admission.Workflow(refunds)
		}
		st, err := act(context.Background(), admission.Transition{Scope: scope})
		if err != nil && admission.Code(err) != "admission_stopped" { // of the workflow, while all is stopped
			panic(err)
		}
		if err == nil {
			_, _ = fmt.Fprintf(out, "%d %s\n", st.Generation, st.Digest)
			_ = out.Flush()
		}
	}
}

// reader reads the ledger for ever.
func reader(ledger string) {
	db := must(sql.Open("sqlite", ledger))
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"BEGIN", "SELECT count(*) FROM receipts"} {
		_ = must(db.Exec(statement))
	}
	fmt.Println(`{}`)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// process is a child of the test.
type process struct {
	cmd *exec.Cmd
	in  *json.Encoder
	out *json.Decoder
	raw io.Reader
	end func()
}

func start(tb testing.TB, role, dir string) *process {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), must(os.Executable()), dir)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	stdin, stdout := must(cmd.StdinPipe()), must(cmd.StdoutPipe())
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p := &process{cmd: cmd, in: json.NewEncoder(stdin), out: json.NewDecoder(stdout), raw: stdout}
	p.end = sync.OnceFunc(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	tb.Cleanup(p.end)

	return p
}

func (p *process) do(tb testing.TB, op, scope string) (r report) {
	tb.Helper()
	if err := p.in.Encode(order{op, scope}); err != nil {
		tb.Fatal(err)
	}
	if err := p.out.Decode(&r); err != nil {
		tb.Fatal(err)
	}

	return r
}
