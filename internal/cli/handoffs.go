package cli

import (
	"bufio"

	"github.com/spf13/cobra"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
)

func (a *app) handoffsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "handoffs",
		Short: "Show what waits for a human, and record what was decided",
		Long: "handoffs reads the file of JSON lines to which guarded processes append what a human has to decide, and appends decisions\n" +
			"to it. A decision is a record: nothing reads it to permit anything, no run goes on by it, and no effect is approved.\n" +
			"A handoff is named by its digest, and it can be decided once, until 30 minutes after it was issued. A file that is\n" +
			"missing, a symbolic link, of another user or open to others is queue_unreadable.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&a.handoffs, "file", "", "handoff `file`, else INTERLOCK_HANDOFFS")
	cmd.AddCommand(a.handoffsListCommand(), a.handoffsShowCommand(), a.handoffsDecideCommand())
	for _, sub := range cmd.Commands() {
		sub.ValidArgsFunction = cobra.NoFileCompletions
	}

	return cmd
}

// queue opens the queue that the flags name.
func (a *app) queue() (*escalation.Queue, error) {
	a.settings()
	if a.handoffs == "" {
		return nil, admission.ErrNotConfigured
	}

	return escalation.NewQueue(escalation.QueueConfig{Path: a.handoffs, LockTimeout: a.timeout, Now: a.now})
}

// queued is one handoff as list prints it.
type queued struct {
	Digest    string   `json:"handoff_digest"`
	State     string   `json:"state"`
	Run       string   `json:"run_id"`
	Workflow  string   `json:"workflow_id"`
	Class     string   `json:"failure_class"`
	Reason    string   `json:"reason_code"`
	Requested string   `json:"requested_decision"`
	Offers    []string `json:"decisions"`
	Issued    int64    `json:"issued_at"`
	Expires   int64    `json:"expires_at"`
	Decision  string   `json:"decision,omitempty"`
}

func queuedOf(e escalation.QueueEntry) queued {
	q := queued{
		Digest: e.Digest.String(), State: e.State.String(), Run: e.Handoff.RunID().String(),
		Workflow: e.Handoff.WorkflowID().String(), Class: e.Handoff.Class().String(), Reason: e.Handoff.ReasonCode().String(),
		Requested: e.Handoff.RequestedDecision().String(),
		Issued:    e.Handoff.IssuedAt().Unix(), Expires: e.Handoff.ExpiresAt().Unix(),
	}
	for _, d := range escalation.ReviewDecisions() {
		if d.Fits(e.Handoff.Class()) {
			q.Offers = append(q.Offers, d.String())
		}
	}
	if !e.Review.IsZero() {
		q.Decision = e.Review.Decision().String()
	}

	return q
}

// queueSummary is the last line of list.
type queueSummary struct {
	Reason   string       `json:"reason_code"`
	Waiting  int          `json:"waiting"`
	Decided  int          `json:"decided"`
	Expired  int          `json:"expired"`
	Repeated int          `json:"repeated"`
	Lines    int          `json:"lines"`
	Damaged  int          `json:"damaged"`
	Damage   []lineDamage `json:"damage,omitempty"`
	Cut      bool         `json:"cut"`
}

type lineDamage struct {
	Line   int    `json:"line"`
	Defect string `json:"defect"`
}

func (a *app) handoffsListCommand() *cobra.Command {
	var only string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the handoffs",
		Long: "list prints the handoffs, the oldest first, one JSON object on a line: handoff_digest, state (waiting, decided or expired),\n" +
			"run_id, workflow_id, failure_class, reason_code, requested_decision, decisions (those that it offers), issued_at and\n" +
			"expires_at (Unix seconds), and decision if there is one. The last line counts what the file holds, whatever --only says.\n" +
			"Lines that are no record, and decisions that do not count, are listed there by number and defect; the rest is printed\n" +
			"all the same, but reason_code is invalid_handoff and the exit code 1: a handoff may be among them. A last line that was\n" +
			"cut is one of them until the file is moved away.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.handoffsList(cmd, only) },
	}
	cmd.Flags().StringVar(&only, "only", "", "waiting, decided or expired (default all)")
	words := make([]string, 0, len(escalation.QueueStates()))
	for _, s := range escalation.QueueStates() {
		words = append(words, s.String())
	}
	completeWords(cmd, "only", words...)

	return cmd
}

func (a *app) handoffsList(cmd *cobra.Command, onlyText string) error {
	only, ok := queueState(onlyText)
	if !ok {
		return errUsage
	}
	q, err := a.queue()
	if err != nil {
		return err
	}
	stdout := a.stdout
	buffered := bufio.NewWriter(stdout)
	a.stdout = buffered
	defer func() { a.stdout = stdout }()
	report, err := q.List(cmd.Context(), func(e escalation.QueueEntry) error {
		if only != 0 && e.State != only {
			return nil
		}

		return a.print(commandName(cmd), queuedOf(e))
	})
	if err == nil {
		err = a.printSummary(cmd, report)
	}
	if errFlush := buffered.Flush(); err == nil && errFlush != nil {
		err = admission.ErrStoreFailed
	}

	return err
}

func (a *app) printSummary(cmd *cobra.Command, r escalation.QueueReport) error {
	s := queueSummary{
		Reason: "ok", Waiting: r.Waiting, Decided: r.Decided, Expired: r.Expired, Repeated: r.Repeated,
		Lines: r.Lines, Damaged: r.Damaged, Cut: r.Cut,
	}
	for _, d := range r.Damage {
		s.Damage = append(s.Damage, lineDamage{Line: d.Line, Defect: d.Defect.String()})
	}
	if r.Damaged > 0 {
		a.failed = true
		s.Reason = admission.Code(escalation.ErrInvalidHandoff)
	}

	return a.print(commandName(cmd), s)
}

// queueState returns the state with this code; "" is all of them.
func queueState(code string) (escalation.QueueState, bool) {
	for _, s := range escalation.QueueStates() {
		if s.String() == code {
			return s, true
		}
	}

	return 0, code == ""
}

func (a *app) handoffsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show DIGEST",
		Short: "Print one handoff",
		Long: "show prints a handoff whole, with its state, and the record of the decision if there is one. DIGEST is the handoff_digest\n" +
			"of list. The digests of the steps are those of the run's decisions in telemetry; content stays where it was.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := handoffDigest(args[0])
			if err != nil {
				return err
			}
			q, err := a.queue()
			if err != nil {
				return err
			}
			e, err := q.Get(cmd.Context(), id)
			if err != nil {
				return err
			}

			return a.print(commandName(cmd), e)
		},
	}
}

// decided is what decide prints.
type decided struct {
	Reason   string `json:"reason_code"`
	Digest   string `json:"handoff_digest"`
	Decision string `json:"decision"`
	Reviewer string `json:"reviewer"`
	Time     int64  `json:"decided_at"`
}

func (a *app) handoffsDecideCommand() *cobra.Command {
	var decisionText, reviewerText string
	cmd := &cobra.Command{
		Use:   "decide DIGEST",
		Short: "Record what was decided about a handoff",
		Long: "decide appends a record: which handoff, what was decided, when and by whom. The decision is one of those that the handoff\n" +
			"offers: a recovery action of its own, abort_run or dismissed. The first one counts (a second is handoff_decided), and only\n" +
			"before the expiry (handoff_expired). The reviewer is asserted, not verified: a desk or a role, [a-z0-9] words joined by\n" +
			". _ or -. Nothing happens by the record: halt, resume or repair with what is made for it.\n" +
			"After queue_failed (the disk) the record may be there or not: show tells.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := handoffDigest(args[0])
			if err != nil {
				return err
			}
			decision, err := escalation.ParseReviewDecision(decisionText)
			if err != nil {
				return err
			}
			reviewer, err := ident.NewLabel(reviewerText)
			if err != nil {
				return errLabel
			}
			q, err := a.queue()
			if err != nil {
				return err
			}
			r, err := q.Decide(cmd.Context(), id, decision, reviewer)
			if err != nil {
				return err
			}

			return a.print(commandName(cmd), decided{
				Reason: "ok", Digest: id.String(), Decision: r.Decision().String(),
				Reviewer: r.Reviewer().String(), Time: r.DecidedAt().Unix(),
			})
		},
	}
	words := make([]string, 0, len(escalation.ReviewDecisions()))
	for _, d := range escalation.ReviewDecisions() {
		words = append(words, d.String())
	}
	cmd.Flags().StringVar(&decisionText, "decision", "", "what was decided: `code`, one of the handoff's decisions")
	cmd.Flags().StringVar(&reviewerText, "reviewer", "", "who is on record: `label`")
	completeWords(cmd, "decision", words...)
	completeWords(cmd, "reviewer")

	return cmd
}

func handoffDigest(text string) (ident.Digest, error) {
	id, err := ident.ParseDigest(text)
	if err != nil {
		return ident.Digest{}, escalation.ErrInvalidDigest
	}

	return id, nil
}

// commandName returns the name of a command of a group, as in "handoffs list".
func commandName(cmd *cobra.Command) string { return cmd.Parent().Name() + " " + cmd.Name() }
