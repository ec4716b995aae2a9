package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
)

const (
	logPage   = 1000
	watchTick = 200 * time.Millisecond
	busyPause = 10 * time.Millisecond
)

// verified is what verify prints.
type verified struct {
	Reason     string `json:"reason_code"`
	Generation uint64 `json:"generation"`
	Digest     string `json:"receipt_digest"`
	First      string `json:"first_receipt_digest"`
}

func (a *app) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Verify the whole chain of receipts and both files",
		Long: "verify reads every receipt of the ledger, and the anchor: form, signature, place, transition, link to the one before, schema.\n" +
			"What does not hold is untrusted_state, exit 1, with first_bad_generation if a receipt is to blame.\n" +
			"The key that verifies can also sign: this shows tampering by others, not by whoever holds the key. Ledger and anchor\n" +
			"that were both restored from one older moment verify; compare the generation with what you know.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			var v admission.Verification
			err = a.patiently(cmd.Context(), func() error {
				var err error
				v, err = admission.Verify(cmd.Context(), s)

				return err //nolint:wrapcheck // becomes a code
			})
			if err != nil {
				return verifyError{err, v.FirstBad}
			}

			return a.print(cmd.Name(), verified{
				Reason: "ok", Generation: v.Head.Generation, Digest: v.Head.Digest.String(), First: v.First.String(),
			})
		},
	}
}

// line is one receipt as log prints it.
type line struct {
	Generation uint64 `json:"generation"`
	Scope      string `json:"scope"`
	State      string `json:"state"`
	Role       string `json:"role"`
	Reason     string `json:"reason_code"`
	Time       int64  `json:"time"`
	Digest     string `json:"receipt_digest"`
}

func (a *app) logCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "log",
		Short: "List the receipts",
		Long: "log verifies the store and prints its receipts, the oldest first, one JSON object on a line: generation, scope, state,\n" +
			"role, reason_code, time (Unix seconds) and receipt_digest. The role is what was asserted, and the time is the clock of\n" +
			"that machine: only the generation orders receipts. Of a store that cannot be trusted nothing is listed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.log(cmd) },
	}
}

func (a *app) log(cmd *cobra.Command) error {
	ctx := cmd.Context()
	s, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	var head admission.Head
	err = a.patiently(ctx, func() error {
		var err error
		head, err = s.Head(ctx)

		return err //nolint:wrapcheck // becomes a code
	})
	if err != nil {
		return err
	}
	stdout := a.stdout
	buffered := bufio.NewWriter(stdout)
	a.stdout = buffered
	defer func() { a.stdout = stdout }()
	err = a.receipts(ctx, s, admission.Head{}, head, func(r admission.Receipt, digest ident.Digest) error {
		return a.print(cmd.Name(), line{
			Generation: r.Generation, Scope: r.Scope.String(), State: r.State.String(), Role: r.Role.String(),
			Reason: r.Reason.String(), Time: r.Time, Digest: digest.String(),
		})
	})
	if errFlush := buffered.Flush(); err == nil && errFlush != nil {
		err = admission.ErrStoreFailed
	}

	return err
}

// receipts gives yield the receipts from after to head, which is verified: each
// has to link to the one before, and the last one to be head.
func (a *app) receipts(
	ctx context.Context, s admission.Store, after, head admission.Head, yield func(admission.Receipt, ident.Digest) error,
) error {
	for after.Generation < head.Generation {
		var page []admission.Receipt
		err := a.patiently(ctx, func() error {
			var err error
			page, err = s.Receipts(ctx, after.Generation, int(min(logPage, head.Generation-after.Generation)))

			return err //nolint:wrapcheck // becomes a code
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return admission.ErrUntrustedState
		}
		for _, r := range page {
			if r.Generation != after.Generation+1 || r.Previous != after.Digest {
				return admission.ErrUntrustedState
			}
			after = admission.Head{Generation: r.Generation, Digest: r.Digest()}
			if err := yield(r, after.Digest); err != nil {
				return err
			}
		}
	}
	if after != head {
		return admission.ErrUntrustedState
	}

	return nil
}

func (a *app) watchCommand() *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print each change until interrupted",
		Long: "watch prints the state now and then every transition as it is recorded, one JSON object on a line, until it is interrupted\n" +
			"(exit 0). It looks five times a second: a transition shows a moment after checks go by it. With --scope it prints only\n" +
			"what touches that scope. On untrusted state it prints that and exits 1: nothing but a human changes it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()

			return a.watch(ctx, cmd.Name(), scope)
		},
	}
	cmd.Flags().StringVar(&scope, "scope", "", "global or one `workflow` identifier (default all)")
	completeWords(cmd, "scope", admission.Global().String())

	return cmd
}

func (a *app) watch(ctx context.Context, name, scopeText string) error {
	only := admission.Global()
	if scopeText != "" {
		var err error
		if only, err = admission.ParseScope(scopeText); err != nil {
			return err //nolint:wrapcheck // becomes a code
		}
	}
	s, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := admission.New(admission.Config{Store: s})
	if err != nil {
		return err //nolint:wrapcheck // becomes a code
	}
	status, err := a.readStatus(ctx, c, only)
	if err == nil {
		err = a.printStatus(name, status)
	}
	if err != nil || a.failed {
		return err
	}
	seen := admission.Head{Generation: status.Generation, Digest: status.Digest}
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		status, err := a.readStatus(ctx, c, only)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, admission.ErrStoreBusy):
			continue // nothing that was recorded is lost: it is printed later
		case err != nil:
			return err
		case a.failed:
			return a.printStatus(name, status)
		}
		head := admission.Head{Generation: status.Generation, Digest: status.Digest}
		err = a.receipts(ctx, s, seen, head, func(r admission.Receipt, digest ident.Digest) error {
			if scopeText != "" && r.Scope != only && !r.Scope.IsGlobal() {
				return nil
			}

			return a.print(name, answer{
				Scope: r.Scope.String(), Reason: "admission_" + r.State.String(), Generation: r.Generation, Digest: digest.String(),
			})
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
		seen = head
	}
}

// readStatus reads the state of a scope, waiting for a locked store. Of an
// untrusted one it is the status, and the command has failed.
func (a *app) readStatus(ctx context.Context, c *admission.Controller, scope admission.Scope) (admission.Status, error) {
	var status admission.Status
	err := a.patiently(ctx, func() error {
		status = c.Status(ctx, scope)
		if status.State == admission.Stopped && !errors.Is(status.Reason, admission.ErrStopped) {
			return status.Reason
		}

		return nil
	})
	if errors.Is(err, admission.ErrUntrustedState) {
		a.failed = true

		return status, nil
	}

	return status, err
}

// open reads the configuration and opens the store: for writing, also to read,
// so that what a dead process left half-done is brought to its end, and not
// taken for tampering.
func (a *app) open(ctx context.Context) (*admission.SQLiteStore, error) {
	a.settings()
	cfg, err := a.store()
	if err != nil {
		return nil, err
	}

	return admission.OpenStore(ctx, cfg) //nolint:wrapcheck // becomes a code
}

// patiently calls f until it does not find the store locked, for at most
// --timeout.
func (a *app) patiently(ctx context.Context, f func() error) error {
	for deadline := time.Now().Add(a.timeout); ; {
		err := f()
		if err == nil || !errors.Is(err, admission.ErrStoreBusy) || time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(busyPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// verifyError is a failure of verify, which is worth a number more.
type verifyError struct {
	error

	firstBad uint64
}

func (e verifyError) Unwrap() error { return e.error }
