package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// Formats of records for programs that read lines.
const (
	formatLines       = "jsonl"
	formatCloudEvents = "cloudevents"
)

// recordsOptions are what `records` was asked for.
type recordsOptions struct {
	base.Viewing
	types       []string
	by, since   string
	undelivered bool
}

// NewRecords returns `kubectl fleet records`.
func NewRecords(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &recordsOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	o.Further = []string{formatLines, formatCloudEvents}
	cmd := &cobra.Command{
		Use:   "records [run/NAME | placement/NAME | member/NAME]",
		Short: "Show what is on record: who created, approved, stopped and changed what, and what became of it",
		Long: `Show the AuditRecords of an update run, of a placement and all its runs, of a member, or all there are, with those of holds
and overrides, the oldest first. They stay when runs, approval requests and Temporal's histories are gone, so the run or the
placement need not be there any more.

The hub agent keeps records if records.enabled is set in the values of its chart. 'By' is fleet for what the agents have decided, and
unverified where it is not known who it was; a name with '(not verified)' behind it is what the sender claimed.

With --output jsonl each record is a line of JSON, and with cloudevents a line that is an event of CloudEvents 1.0, whose data is the
same: a receiver drops those whose id it has.`,
		Example: `  # What has happened with run web-2?
  kubectl fleet records run/web-2

  # Who has approved what in the last week?
  kubectl fleet records --type approval.given --since 168h

  # Who has lifted which hold, and when was a member lost?
  kubectl fleet records --type 'hold.*'
  kubectl fleet records member/member-3 --type member.lost

  # What has Jane done with placement web?
  kubectl fleet records placement/web --by jane@example.com

  # For a SIEM
  kubectl fleet records --since 2026-11-01T00:00:00Z -o cloudevents

  # What has an AuditSink or a NotificationChannel not got yet?
  kubectl fleet records --undelivered

  # Is anything missing, or changed?
  kubectl fleet records verify`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: base.CompleteRefs(f, hub.KindRun, hub.KindPlacement, hub.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := o.readChoice(args)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), chosen)
		},
	}
	o.AddFlags(cmd)
	cmd.Flags().StringSliceVar(&o.types, "type", nil, "Show these types only, such as approval.given or 'approval.*'.")
	cmd.Flags().StringVar(&o.by, "by", "", "Show what this user has done.")
	cmd.Flags().StringVar(&o.since, "since", "", "Show what has happened since a time, such as 2026-11-21T00:00:00Z, or in a time up to now, such as 24h.")
	cmd.Flags().BoolVar(&o.undelivered, "undelivered", false, "Show what an AuditSink, or a channel of a NotificationRule, has not got yet, and which: RULE/CHANNEL? if that depends on the rule's expression.")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.NoFileCompletions) // fails only for a flag that is not there
	cmd.AddCommand(newRecordsVerify(f, streams))
	return cmd
}

func newRecordsVerify(f *cli.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &recordsOptions{Viewing: base.Viewing{Factory: f, Streams: streams}}
	cmd := &cobra.Command{
		Use:   "verify [run/NAME | placement/NAME | member/NAME]",
		Short: "Look whether records are missing or were changed",
		Long: `Look whether records are missing, were changed or were added: each record of an object has the digest of the one before. It
exits with 1, and says where, if a chain is broken.

Records before the first that is there were deleted after their time, which breaks no chain. Nothing shows from the records alone that the
last ones are missing, or that the last one was changed: keep the digests that are printed elsewhere, and compare them.`,
		Example: `  # Of all objects
  kubectl fleet records verify

  # Of one, for a program
  kubectl fleet records verify run/web-2 -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: base.CompleteRefs(f, hub.KindRun, hub.KindPlacement, hub.KindMember),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen, err := o.readChoice(args)
			if err != nil {
				return err
			}
			return o.verifyChains(cmd.Context(), chosen)
		},
	}
	o.AddFlags(cmd)
	return cmd
}

// recordChoice says which records are meant.
type recordChoice struct {
	// subjects are the objects that a name may mean; none mean all.
	subjects  []hub.Ref
	namespace string
	named     bool
	since     time.Time
}

// readChoice reads which records are meant.
func (o *recordsOptions) readChoice(args []string) (recordChoice, error) {
	chosen := recordChoice{}
	if err := o.Validate(); err != nil {
		return chosen, err
	}
	var err error
	if chosen.since, err = o.readSince(); err != nil {
		return chosen, err
	}
	for _, pattern := range o.types {
		if _, err := path.Match(pattern, ""); err != nil {
			return chosen, cli.Usagef("--type %q is not a type: use one such as approval.given, or 'approval.*'", pattern)
		}
	}
	if chosen.namespace, chosen.named, err = o.Factory.Namespace(); err != nil || len(args) == 0 {
		return chosen, err
	}
	chosen.subjects, err = hub.Parse(args[0], hub.Scope{Namespace: chosen.namespace, Named: chosen.named}, hub.KindRun, hub.KindPlacement, hub.KindMember)
	return chosen, cli.Usage(err)
}

// readSince reads --since.
func (o *recordsOptions) readSince() (time.Time, error) {
	if o.since == "" {
		return time.Time{}, nil
	}
	if before, err := time.ParseDuration(o.since); err == nil && before > 0 {
		return o.Factory.Clock.Now().Add(-before), nil
	}
	at, err := time.Parse(time.RFC3339, o.since)
	if err != nil {
		return at, cli.Usagef("--since %q is no time: use one such as 2026-11-21T00:00:00Z, or a time up to now, such as 24h", o.since)
	}
	return at, nil
}

// isOf reports whether a record is about one of the objects that are meant.
func (c recordChoice) isOf(spec *fleetflowv1alpha1.AuditRecordSpec) bool {
	if len(c.subjects) == 0 {
		return !c.named || spec.SubjectRef.Namespace == c.namespace
	}
	return slices.ContainsFunc(c.subjects, func(ref hub.Ref) bool {
		name := spec.UpdateRunName
		switch ref.Kind {
		case hub.KindPlacement:
			name = spec.PlacementName
		case hub.KindMember:
			name = spec.SubjectRef.Name
			if spec.SubjectRef.Kind != "MemberCluster" {
				return false
			}
		default:
		}
		return ref.Namespace == spec.SubjectRef.Namespace && ref.Name == name
	})
}

// isChosen reports whether a record is to be shown.
func (o *recordsOptions) isChosen(chosen recordChoice, record *fleetflowv1alpha1.AuditRecord) bool {
	spec := &record.Spec
	isType := len(o.types) == 0 || slices.ContainsFunc(o.types, func(pattern string) bool {
		matches, err := path.Match(pattern, string(spec.Type))
		return err == nil && matches
	})
	isBy := o.by == "" || spec.Actor != nil && spec.Actor.Username == o.by
	return isType && isBy && chosen.isOf(spec) && !spec.Time.Time.Before(chosen.since)
}

// readRecords reads all records that the filters leave, the oldest first.
func (o *recordsOptions) readRecords(ctx context.Context, chosen recordChoice) ([]fleetflowv1alpha1.AuditRecord, error) {
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	var found []fleetflowv1alpha1.AuditRecord
	err = o.Factory.Patiently(o.Streams, "reading the records", func() error {
		found = nil
		return eachRecord(ctx, c, func(record fleetflowv1alpha1.AuditRecord) {
			if o.isChosen(chosen, &record) {
				found = append(found, record)
			}
		})
	})
	if hub.Unserved(err) {
		return nil, errors.New("this hub keeps no records: it does not serve their kind; upgrade the chart of the hub agent, and set records.enabled")
	}
	if err != nil {
		return nil, fmt.Errorf("listing the records: %w", err)
	}
	slices.SortFunc(found, func(a, b fleetflowv1alpha1.AuditRecord) int {
		return cmp.Or(a.Spec.Time.Compare(b.Spec.Time.Time), strings.Compare(a.Spec.SubjectRef.UID, b.Spec.SubjectRef.UID),
			cmp.Compare(a.Spec.Sequence, b.Spec.Sequence))
	})
	return found, nil
}

// recordsInAPart is how many records are asked for at once: there may be many.
const recordsInAPart = 500

// eachRecord calls a function for each record of the hub.
func eachRecord(ctx context.Context, c client.Reader, do func(fleetflowv1alpha1.AuditRecord)) error {
	from := ""
	for {
		list := fleetflowv1alpha1.AuditRecordList{}
		if err := c.List(ctx, &list, client.Limit(recordsInAPart), client.Continue(from)); err != nil {
			return err
		}
		for i := range list.Items {
			record := list.Items[i]
			record.ManagedFields = nil
			record.SetGroupVersionKind(fleetflowv1alpha1.GroupVersion.WithKind("AuditRecord"))
			do(record)
		}
		if from = list.Continue; from == "" {
			return nil
		}
	}
}

// readTakers reads who gets records.
func (o *recordsOptions) readTakers(ctx context.Context) (*fleetview.Takers, error) {
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	var takers *fleetview.Takers
	err = o.Factory.Patiently(o.Streams, "reading who gets records", func() (err error) {
		takers, err = fleetview.TakersOf(ctx, c)
		return err
	})
	return takers, err
}

// noRecords is what is said where there are none.
const noRecords = "There are no such records. The hub agent keeps some if records.enabled is set in the values of its chart."

func (o *recordsOptions) run(ctx context.Context, chosen recordChoice) error {
	found, err := o.readRecords(ctx, chosen)
	if err != nil {
		return err
	}
	columns := fleetview.RecordColumns
	none := noRecords
	if o.undelivered {
		takers, err := o.readTakers(ctx)
		if err != nil {
			return err
		}
		found, columns = takers.Undelivered(found)
		none = takers.None()
		if len(takers.LeftOut) > 0 {
			cli.Printf(o.Streams.ErrOut, "You may not list the %s of this hub: what channels wait for is left out.\n", strings.Join(takers.LeftOut, " and the "))
		}
	}
	if o.Format == formatLines || o.Format == formatCloudEvents {
		say := cli.LineEncoder(o.Streams.Out)
		for i := range found {
			var line any = found[i].Spec
			if o.Format == formatCloudEvents {
				line = found[i].Spec.CloudEvent()
			}
			if err := say(line); err != nil {
				return err
			}
		}
		return nil
	}
	list := fleetflowv1alpha1.AuditRecordList{
		TypeMeta: metav1.TypeMeta{APIVersion: fleetflowv1alpha1.GroupVersion.String(), Kind: "AuditRecordList"},
		Items:    append([]fleetflowv1alpha1.AuditRecord{}, found...),
	}
	return base.Show(&o.Viewing, list, columns, found, none)
}

// verifyChains looks at the chains of the records of each subject.
func (o *recordsOptions) verifyChains(ctx context.Context, chosen recordChoice) error {
	found, err := o.readRecords(ctx, chosen)
	if err != nil {
		return err
	}
	var subjects []string
	bySubject := map[string][]fleetflowv1alpha1.AuditRecord{}
	for i := range found {
		uid := found[i].Spec.SubjectRef.UID
		if bySubject[uid] == nil {
			subjects = append(subjects, uid)
		}
		bySubject[uid] = append(bySubject[uid], found[i])
	}
	chains := []fleetflowv1alpha1.AuditChain{}
	broken := 0
	for _, uid := range subjects {
		chain := fleetflowv1alpha1.VerifyRecords(bySubject[uid])
		if len(chain.Breaks) > 0 {
			broken++
		}
		chains = append(chains, chain)
	}
	if err := base.Show(&o.Viewing, chains, fleetview.ChainColumns, chains, noRecords); err != nil {
		return err
	}
	for _, chain := range chains {
		for _, broken := range chain.Breaks {
			cli.Printf(o.Streams.ErrOut, "%s: %s\n", chain.Subject.Name, broken)
		}
	}
	if broken > 0 {
		return &cli.Exit{Code: cli.CodeFailed, Err: fmt.Errorf("the records of %s are not whole", tree.Plural(broken, "object"))}
	}
	return nil
}
