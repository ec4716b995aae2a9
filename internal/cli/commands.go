package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
)

const defaultTimeout = 5 * time.Second

func (a *app) initCommand() *cobra.Command {
	var roleText string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a new store: everything is disabled",
		Long: "init makes ledger and anchor, which may not exist yet, and prints the digest of the first receipt.\n" +
			"Keep that digest as --pin, and the anchor on storage that no restore of the ledger touches. A path that exists is refused,\n" +
			"an empty file too, and nothing that was there is changed. One key belongs to one store.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			role, err := admission.ParseRole(roleText)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
			defer cancel()
			digest, err := a.initialize(ctx, role)
			if err != nil {
				return err
			}

			return a.print(cmd.Name(), answer{
				Scope: admission.Global().String(), Reason: admission.Code(admission.ErrDisabled), Generation: 1, Digest: digest.String(),
			})
		},
	}
	roleFlag(cmd, &roleText, admission.Operator)

	return cmd
}

func (a *app) statusCommand() *cobra.Command {
	var scope string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the state of a scope",
		Long: "status verifies ledger and anchor completely and prints what a check of the scope would go by now; a moment later\n" +
			"somebody may have changed it. With nothing configured it says admission_disabled. An untrusted state is printed too,\n" +
			"with the highest known generation, and exits 1. It does not say whether an effect is still in flight somewhere.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd, scope) },
	}
	scopeFlag(cmd, &scope)

	return cmd
}

func (a *app) status(cmd *cobra.Command, scopeText string) error {
	scope, err := admission.ParseScope(scopeText)
	if err != nil {
		return err
	}
	a.settings()
	if a.state == "" && a.anchor == "" && a.keyFile == "" {
		return a.printStatus(cmd.Name(), (*admission.Controller)(nil).Status(cmd.Context(), scope))
	}
	cfg, err := a.store()
	if err != nil {
		return err
	}
	c, done, err := a.controller(cmd.Context(), cfg)
	if errors.Is(err, admission.ErrUntrustedState) {
		a.failed = true

		return a.print(cmd.Name(), answer{
			Scope: scope.String(), Reason: admission.Code(err), Digest: ident.Digest{}.String(),
		})
	}
	if err != nil {
		return err
	}
	defer done()
	status, err := a.readStatus(cmd.Context(), c, scope)
	if err != nil {
		return err
	}

	return a.printStatus(cmd.Name(), status)
}

func (a *app) stopCommand() *cobra.Command {
	var m metadata
	var force bool
	cmd := &cobra.Command{
		Use:   "stop",
		Short: "Stop a scope, now and for every process of this host",
		Long: "stop records a stop. Once it has returned, every check that begins afterwards refuses, in every process of this host\n" +
			"that uses this store. Effects that have begun are not recalled: each process can wait for its own with Drain.\n" +
			"With store_busy (somebody holds the ledger locked) or store_failed (the disk) nothing was recorded, and admission may\n" +
			"still be open. After store_busy --force renames the anchor, which no lock prevents: every check of every scope fails from\n" +
			"then on. It prints untrusted_state and exits 0. Only a human can undo it: find who held the lock, then move the anchor\n" +
			"back to its name.\n" +
			"Neither form reaches another host, or a program that does not ask the gate.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			do := (*admission.Controller).Stop
			if force {
				do = (*admission.Controller).ForceStop
			}
			err := a.transition(cmd, m, false, do)
			if errors.Is(err, admission.ErrStoreBusy) || errors.Is(err, admission.ErrStoreFailed) {
				return stopError{err}
			}

			return err
		},
	}
	m.flags(cmd, admission.IncidentCommander)
	cmd.Flags().StringVar(&m.reason, "reason", admission.EmergencyStop.String(), "emergency_stop or maintenance")
	cmd.Flags().BoolVar(&force, "force", false, "if the store stays locked, take the anchor away: everything stops")
	completeWords(cmd, "reason", admission.EmergencyStop.String(), admission.Maintenance.String())

	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	m := metadata{reason: admission.ExplicitEnable.String()} // the only one, and no flag
	var initialize bool
	cmd := &cobra.Command{
		Use:   "resume",
		Short: "Enable a scope",
		Long: "resume records that a scope may act again. It is a new act: whatever was previewed or approved before stays stale.\n" +
			"A workflow that was stopped by itself stays stopped when all are resumed. An untrusted state cannot be resumed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.transition(cmd, m, initialize, (*admission.Controller).Enable)
		},
	}
	m.flags(cmd, admission.Operator)
	cmd.Flags().BoolVar(&initialize, "initialize", false, "make a new store first; it may not exist")

	return cmd
}

func (a *app) keygenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keygen",
		Short: "Write a new key",
		Long: "keygen writes 32 random bytes to --key-file, mode 0600, and never over a file. One key belongs to one store.\n" +
			"Who can read it can verify receipts and forge them.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.settings()
			if a.keyFile == "" {
				return admission.ErrNotConfigured
			}
			if err := admission.GenerateKeyFile(a.keyFile); err != nil {
				return err
			}

			return a.print(cmd.Name(), failure{Reason: "ok"})
		},
	}
}

// metadata are the flags of a transition.
type metadata struct{ scope, role, reason string }

func (m *metadata) flags(cmd *cobra.Command, role admission.Role) {
	scopeFlag(cmd, &m.scope)
	roleFlag(cmd, &m.role, role)
}

func roleFlag(cmd *cobra.Command, role *string, value admission.Role) {
	cmd.Flags().StringVar(role, "role", value.String(), "operator or incident_commander; recorded, not verified")
	completeWords(cmd, "role", admission.Operator.String(), admission.IncidentCommander.String())
}

func scopeFlag(cmd *cobra.Command, scope *string) {
	cmd.Flags().StringVar(scope, "scope", admission.Global().String(), "global or one `workflow` identifier")
	completeWords(cmd, "scope", admission.Global().String())
}

func (m *metadata) parse() (t admission.Transition, err error) {
	if t.Scope, err = admission.ParseScope(m.scope); err != nil {
		return t, err
	}
	if t.Role, err = admission.ParseRole(m.role); err != nil {
		return t, err
	}
	t.Reason, err = admission.ParseTransitionReason(m.reason)

	return t, err
}

type act func(*admission.Controller, context.Context, admission.Transition) (admission.Status, error)

func (a *app) transition(cmd *cobra.Command, m metadata, initialize bool, do act) error {
	t, err := m.parse()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
	defer cancel()
	if initialize {
		digest, err := a.initialize(ctx, t.Role)
		if err != nil {
			return err
		}
		a.pin = digest.String()
	}
	a.settings()
	cfg, err := a.store()
	if err != nil {
		return err
	}
	c, done, err := a.controller(ctx, cfg)
	if err != nil {
		return err
	}
	defer done()
	status, err := do(c, ctx, t)
	if err != nil {
		return err
	}

	return a.printStatus(cmd.Name(), status)
}

func (a *app) initialize(ctx context.Context, role admission.Role) (ident.Digest, error) {
	a.settings()
	cfg, err := a.store()
	if err != nil {
		return ident.Digest{}, err
	}
	cfg.Role, cfg.Now = role, a.now

	return admission.Initialize(ctx, cfg)
}

// store reads the configuration: all of it, or not_configured.
func (a *app) store() (cfg admission.StoreConfig, err error) {
	if a.state == "" || a.anchor == "" || a.keyFile == "" {
		return cfg, admission.ErrNotConfigured
	}
	cfg.Ledger, cfg.Anchor = a.state, a.anchor
	if a.pin != "" {
		if cfg.Pin, err = ident.ParseDigest(a.pin); err != nil {
			return cfg, errUsage
		}
		if cfg.Pin.IsZero() {
			return cfg, errUsage // it would mean none
		}
	}
	cfg.Key, err = admission.LoadKeyFile(a.keyFile)

	return cfg, err
}

// controller opens the store for writing, also to read: what a dead process left
// half-done is then brought to its end, and not taken for tampering.
func (a *app) controller(ctx context.Context, cfg admission.StoreConfig) (*admission.Controller, func(), error) {
	s, err := admission.OpenStore(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	c, err := admission.New(admission.Config{Store: s, Now: a.now})
	if err != nil {
		return nil, nil, err
	}

	return c, func() { _ = s.Close() }, nil
}
