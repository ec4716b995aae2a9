// The command langchaingo shows what the library does, on a refund desk: an
// agent of langchaingo looks orders up, refunds them and writes to customers,
// through its real clients and over real HTTP, while a provider fails, the model
// loops, a tool hangs and an operator stops everything. It needs no network, no
// key and nothing installed, and writes to a temporary folder only.
//
//	go run ./examples/langchaingo                 all acts, as timelines
//	go run ./examples/langchaingo -act stop       one act
//	go run ./examples/langchaingo -json           one JSON object per act
//	go run ./examples/langchaingo -keep DIR       keep files, spans and metrics
//	go run ./examples/langchaingo -otlp localhost:4317   send spans and metrics to a collector
//	go run ./examples/langchaingo -provider openai -model gpt-4o-mini
//
// The last form lets a real model work on the desk; key and base URL come from
// the usual environment variables. The exit code is 1 if an act did not end as
// it should, and 2 for flags that make no sense.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

const usageExit = 2

func main() {
	if isOperator() {
		os.Exit(operate(os.Args[1:]))
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	os.Exit(code)
}

type options struct {
	act, keep, provider, model string
	json                       bool
	otlp                       endpoint
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, stdout)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "langchaingo:", err)

		return usageExit
	}
	out, err := newCollector(ctx, opts.otlp)
	if err != nil {
		fmt.Fprintln(stderr, "langchaingo:", err)

		return usageExit
	}
	paint := painter(isTerminal(stdout) && os.Getenv("NO_COLOR") == "")
	play := runActs
	if opts.provider != "" {
		play = runLive
	}
	code := play(ctx, opts, out, stdout, stderr, paint)
	if reason := out.close(); reason != 0 {
		fmt.Fprintf(stderr, "langchaingo: warning: spans and metrics were not delivered: %s\n", reason.String())
	}

	return code
}

// parse reads the flags. Its errors are one line and do not repeat a value.
func parse(args []string, stdout io.Writer) (options, error) {
	var o options
	var badEndpoint error
	fs := flag.NewFlagSet("langchaingo", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.act, "act", "", "run this act only: "+actNames())
	fs.StringVar(&o.keep, "keep", "", "keep each act's folder in this folder")
	fs.BoolVar(&o.json, "json", false, "print one JSON object per act")
	fs.StringVar(&o.provider, "provider", "", "let a real model work: openai, anthropic or ollama")
	fs.StringVar(&o.model, "model", "", "the model to ask, with -provider")
	fs.Func("otlp", "send spans and metrics over OTLP to this `endpoint`: host:port or grpc://host:port for gRPC without TLS,\n"+
		"http://host:port or https://host:port for HTTP", func(text string) error {
		o.otlp, badEndpoint = parseEndpoint(text)

		return nil
	})
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(stdout)
		fs.PrintDefaults()

		return o, flag.ErrHelp
	case err != nil:
		return o, errors.New("unknown or incomplete flag; -help lists them")
	case badEndpoint != nil:
		return o, badEndpoint
	case fs.NArg() > 0:
		return o, errors.New("arguments are not expected; -help lists the flags")
	case o.act != "" && len(chosen(o.act)) == 0:
		return o, errors.New("unknown act; there are: " + actNames())
	case o.provider != "" && !knownProvider(o.provider):
		return o, errors.New("unknown provider; there are: openai, anthropic, ollama")
	case (o.provider == "") != (o.model == ""):
		return o, errors.New("-provider and -model go together")
	case o.provider != "" && (o.act != "" || o.json):
		return o, errors.New("-provider runs no acts: leave -act and -json out")
	}

	return o, nil
}

func actNames() string {
	var names []string
	for _, a := range acts() {
		names = append(names, a.name)
	}

	return strings.Join(names, ", ")
}

// chosen returns the act of this name, or all for "".
func chosen(name string) []act {
	var some []act
	for _, a := range acts() {
		if name == "" || a.name == name {
			some = append(some, a)
		}
	}

	return some
}

func runActs(ctx context.Context, opts options, out *collector, stdout, stderr io.Writer, paint painter) int {
	var results []result
	code := 0
	for _, a := range chosen(opts.act) {
		r, tl, err := perform(ctx, a, opts.keep, out)
		if err != nil {
			fmt.Fprintf(stderr, "langchaingo: %s: %v\n", a.name, err)
			code = 1
		}
		if !r.OK {
			code = 1
		}
		results = append(results, r)
		if opts.json {
			if err := r.printJSON(stdout); err != nil {
				return 1
			}

			continue
		}
		fmt.Fprintf(stdout, "%s: %s\n", paint.bold(a.name), a.about)
		tl.print(stdout, paint)
		if opts.keep != "" {
			fmt.Fprintf(stdout, "  spans and metrics: %s\n", filepath.Join(a.name, "telemetry.jsonl"))
		}
		fmt.Fprintf(stdout, "  %s: %s, %d written\n\n", paint.ok(r.OK, "outcome"), r.Outcome, r.Effects)
	}
	if !opts.json {
		printTable(stdout, results, paint)
	}

	return code
}

// perform plays one act in a folder of its own, and sends its telemetry to out
// too, unless that is nil.
func perform(ctx context.Context, a act, keep string, out *collector) (result, *timeline, error) {
	r := result{Act: a.name, Outcome: "failed", Decisions: map[string]map[string]int{}}
	dir, remove, err := actFolder(a.name, keep)
	if err != nil {
		return r, newTimeline(), err
	}
	defer remove()
	s, err := newStack(ctx, dir, a, out)
	if err != nil {
		return r, s.timeline, err
	}
	s.timeline.begin = time.Now()
	outcome, err := a.play(ctx, s)
	if err == nil {
		r.Effects, err = s.desk.effects(ctx)
	}
	r.DurationMS = time.Since(s.timeline.begin).Milliseconds()
	err = errors.Join(err, s.close())
	r.Decisions = s.timeline.counts
	if err != nil {
		return r, s.timeline, err
	}
	r.Outcome = outcome
	r.OK = outcome == a.want && r.Effects == a.effects

	return r, s.timeline, nil
}

// actFolder returns the folder of an act: a temporary one that remove deletes,
// or one with the act's name in keep, which must not hold one already.
func actFolder(name, keep string) (dir string, remove func(), err error) {
	if keep == "" {
		dir, err = os.MkdirTemp("", "interlock-"+name+"-")
		if err != nil {
			return "", nil, fmt.Errorf("temporary folder: %w", err)
		}

		return dir, func() { _ = os.RemoveAll(dir) }, nil
	}
	if err := os.MkdirAll(keep, 0o700); err != nil {
		return "", nil, errors.New("-keep: the folder cannot be made")
	}
	if dir, err = filepath.Abs(filepath.Join(keep, name)); err != nil {
		return "", nil, errors.New("-keep: the folder cannot be resolved")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, errors.New("-keep: the folder holds this act already, or cannot be written")
	}

	return dir, func() {}, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)

	return ok && term.IsTerminal(int(f.Fd()))
}
