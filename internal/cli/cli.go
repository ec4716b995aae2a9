package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/escalation"
)

// Run executes one command and returns the exit code.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	restrictNewFiles()
	if completing(args) {
		defer muteStderr()()
	}

	return newApp(stdout, os.Getenv).run(context.Background(), args, stdin, stderr)
}

// app is what the commands of one invocation share.
type app struct {
	getenv func(string) string
	stdout io.Writer
	now    func() time.Time

	state, anchor, keyFile, pin, handoffs string
	timeout                               time.Duration
	asJSON                                bool
	failed                                bool // an object was printed, and the exit code is 1 all the same
}

func newApp(stdout io.Writer, getenv func(string) string) *app {
	return &app{stdout: stdout, getenv: getenv, now: time.Now}
}

func (a *app) run(ctx context.Context, args []string, stdin io.Reader, stderr io.Writer) int {
	err := a.execute(ctx, args, stdin)
	if err != nil {
		printError(stderr, err)

		return 1
	}
	if a.failed {
		return 1
	}

	return 0
}

func (a *app) execute(ctx context.Context, args []string, stdin io.Reader) error {
	if args == nil {
		args = []string{} // nil makes cobra read os.Args
	}
	root := a.root() //nolint:contextcheck // commands get theirs from ExecuteContext
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.stdout)
	root.SetErr(io.Discard)

	return root.ExecuteContext(ctx) //nolint:wrapcheck // becomes a code
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "interlock",
		Short: "Stop and resume the effects of agents on this host, and see what waits for a human",
		Long: "interlock records who may act in a signed ledger that every guarded process of this host reads before each effect.\n" +
			"A stop that has returned is seen by every check that begins afterwards. Effects that have begun are not recalled.",
		Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.timeout <= 0 {
				return errUsage
			}

			return nil
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.state, "state", "", "ledger `file`, else INTERLOCK_STATE")
	flags.StringVar(&a.anchor, "anchor", "", "anchor `file`, else INTERLOCK_ANCHOR")
	flags.StringVar(&a.keyFile, "key-file", "", "key `file`, else INTERLOCK_KEY_FILE")
	flags.StringVar(&a.pin, "pin", "", "`digest` of the first receipt, else INTERLOCK_PIN")
	flags.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long to wait for a locked store")
	flags.BoolVar(&a.asJSON, "json", false, "wrap the answer as {ok, command, data}")
	root.SetHelpCommand(helpCommand())
	root.AddCommand(a.keygenCommand(), a.initCommand(), a.statusCommand(), a.stopCommand(), a.resumeCommand(),
		a.verifyCommand(), a.logCommand(), a.watchCommand(), a.handoffsCommand())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		if !cmd.Runnable() { // completion: an unknown shell is a mistake, not a wish for help
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	completeWords(root, "pin")
	completeWords(root, "timeout")

	return root
}

// helpCommand replaces cobra's, which repeats the topics that it does not know.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return errUsage
			}

			return topic.Help()
		},
	}
}

// settings are the flags, else the environment. The environment is no default
// of a flag: help prints defaults.
func (a *app) settings() {
	for _, s := range [...]struct {
		flag *string
		name string
	}{
		{&a.state, "INTERLOCK_STATE"},
		{&a.anchor, "INTERLOCK_ANCHOR"},
		{&a.keyFile, "INTERLOCK_KEY_FILE"},
		{&a.pin, "INTERLOCK_PIN"},
		{&a.handoffs, "INTERLOCK_HANDOFFS"},
	} {
		if *s.flag == "" {
			*s.flag = a.getenv(s.name)
		}
	}
}

var (
	// errUsage is the answer to everything that the command parser objects to.
	errUsage = admission.ErrInvalidControlMetadata
	// errLabel is the answer to a reviewer that is no label.
	errLabel = escalation.ErrInvalidLabel
)

// answer is what init, status, stop and resume print.
type answer struct {
	Scope      string `json:"scope"`
	Reason     string `json:"reason_code"`
	Generation uint64 `json:"generation"`
	Digest     string `json:"receipt_digest"`
}

type envelope struct {
	OK      bool   `json:"ok"`
	Command string `json:"command"`
	Data    any    `json:"data"`
}

type failure struct {
	Reason string `json:"reason_code"`
	// Admission is may_still_be_open for a stop that could not be recorded.
	Admission string `json:"admission,omitempty"`
	// FirstBad is what verify found, if a receipt is to blame.
	FirstBad uint64 `json:"first_bad_generation,omitempty"`
}

func (a *app) print(command string, data any) error {
	if a.asJSON {
		data = envelope{OK: !a.failed, Command: command, Data: data}
	}
	if err := json.NewEncoder(a.stdout).Encode(data); err != nil {
		return admission.ErrStoreFailed // what was asked is done, but nobody was told
	}

	return nil
}

func (a *app) printStatus(command string, s admission.Status) error {
	return a.print(command, answer{
		Scope: s.Scope.String(), Reason: s.Reason.String(), Generation: s.Generation, Digest: s.Digest.String(),
	})
}

// stopError is the failure of a stop, which is worth a word more.
type stopError struct{ error }

func (e stopError) Unwrap() error { return e.error }

func printError(w io.Writer, err error) {
	f := failure{Reason: codeOf(err)}
	switch e := err.(type) { //nolint:errorlint // made by the commands themselves
	case stopError:
		f.Admission = "may_still_be_open"
	case verifyError:
		f.FirstBad = e.firstBad
	}
	_ = json.NewEncoder(w).Encode(f) //nolint:errchkjson // nobody is left to tell
}

// codeOf takes only errors of the library; the rest are the command parser's.
func codeOf(err error) string {
	if code := admission.Code(err); code != "" {
		return code
	}

	return admission.Code(errUsage)
}
