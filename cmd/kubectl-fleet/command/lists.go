package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/fleetview"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// lists shows objects of one kind, with labels.
type lists struct {
	base.Viewing
	labelled
	// allNamespaces takes no notice of the namespace that is named.
	allNamespaces bool
}

// listing is what `get` shows by itself: it is in no overview, and is not watched.
type listing struct {
	// words are what users call it, the first is that of the help.
	words []string
	// unlabelled listings take no labels.
	unlabelled bool
	run        func(l *lists, ctx context.Context, names []string) error
}

// otherListings returns what `get` shows beside members, placements and runs. Evictions and exemptions that are over are among them.
func otherListings() []listing {
	return []listing{
		{words: []string{"approvals", "approval", "clusterapprovalrequests", "clusterapprovalrequest", "careq", "approvalrequests", "approvalrequest", "areq"},
			run: (*lists).runApprovals},
		{words: []string{replicasWord}, unlabelled: true, run: (*lists).runReplicas},
		{words: []string{"strategies", "strategy", "clusterstagedupdatestrategies", "clusterstagedupdatestrategy", "csus", "stagedupdatestrategies", "stagedupdatestrategy", "sus"},
			run: rowsOf[placementv1beta1.UpdateStrategyObject, fleetview.Strategy]{
				word: "strategy", words: "strategies", none: "There are no strategies.", read: hub.Reader.Strategies,
				row: fleetview.StrategyOf, columns: fleetview.StrategyColumns, labels: func(s fleetview.Strategy) map[string]string { return s.Labels },
			}.run},
		{words: []string{"overrides", "override", "clusterresourceoverrides", "clusterresourceoverride", "cro", "resourceoverrides", "resourceoverride", "ro"},
			run: rowsOf[placementv1beta1.OverrideObject, fleetview.Override]{
				word: "override", words: "overrides", none: "There are no overrides.", read: hub.Reader.Overrides,
				row: fleetview.OverrideOf, columns: fleetview.OverrideColumns, labels: func(o fleetview.Override) map[string]string { return o.Labels },
			}.run},
		{words: []string{"evictions", "eviction", "clusterresourceplacementevictions", "clusterresourceplacementeviction", "crpe"},
			run: rowsOf[*placementv1beta1.ClusterResourcePlacementEviction, fleetview.Eviction]{
				word: "eviction", words: "evictions", none: "There are no evictions.", read: hub.Reader.AllEvictions,
				row: fleetview.EvictionOf, columns: fleetview.EvictionColumns, labels: func(e fleetview.Eviction) map[string]string { return e.Labels },
			}.run},
		{words: []string{"windows", "window", "rolloutwindows", "rolloutwindow", "rwin"}, run: (*lists).runWindows},
		{words: []string{"holds", "hold", "rolloutholds", "rollouthold", "rhold"},
			run: rowsOf[*fleetflowv1alpha1.RolloutHold, fleetview.Hold]{
				word: "hold", words: "holds", none: "Nothing is held.", read: readHolds,
				row: fleetview.HoldOf, columns: fleetview.HoldColumns, labels: func(h fleetview.Hold) map[string]string { return h.Labels },
			}.run},
		{words: []string{"exemptions", "exemption", "rolloutexemptions", "rolloutexemption", "rex"},
			run: rowsOf[*fleetflowv1alpha1.RolloutExemption, fleetview.Exemption]{
				word: "exemption", words: "exemptions", none: "Nothing is exempt.", read: readExemptions,
				row: fleetview.ExemptionOf, columns: fleetview.ExemptionColumns, labels: func(e fleetview.Exemption) map[string]string { return e.Labels },
			}.run},
		{words: []string{"channels", "channel", "notificationchannels", "notificationchannel", "nchan"},
			run: rowsOf[*fleetflowv1alpha1.NotificationChannel, fleetview.Told]{
				word: "channel", words: "channels", none: "There are no channels: no message is sent.", read: readChannels,
				row: fleetview.ChannelOf, columns: fleetview.ToldColumns, labels: func(t fleetview.Told) map[string]string { return t.Labels },
			}.run},
		{words: []string{"rules", "rule", "notificationrules", "notificationrule", "nrule"},
			run: rowsOf[*fleetflowv1alpha1.NotificationRule, fleetview.Told]{
				word: "rule", words: "rules", none: "There are no rules: nothing is told in any channel.", read: readRules,
				row: fleetview.RuleOf, columns: fleetview.ToldColumns, labels: func(t fleetview.Told) map[string]string { return t.Labels },
			}.run},
	}
}

// listingNamed returns the listing that a word means; nil if it means none.
func listingNamed(word string) *listing {
	for _, one := range otherListings() {
		if slices.Contains(one.words, strings.ToLower(word)) {
			return &one
		}
	}
	return nil
}

// shownWords are the words of the help for all that `get` shows.
func shownWords() []string {
	words := []string{"members", "placements", "runs"}
	for _, one := range otherListings() {
		words = append(words, one.words[0])
	}
	return words
}

// refuseKind refuses a word that means nothing to get, with those that are nearly the same.
func refuseKind(word string) error {
	if one := listingNamed(word); one != nil {
		return cli.Usagef("%s are shown by themselves: kubectl fleet get %s", one.words[0], one.words[0])
	}
	words := shownWords()
	// A short word is near to others by chance.
	if near := base.Nearest(word, words); len(word) > 2*base.Farthest && len(near) > 0 {
		return cli.Usagef("%q is not something to get; do you mean %s?", word, strings.Join(near, " or "))
	}
	last := len(words) - 1
	return cli.Usagef("%q is not something to get: use %s or %s", word, strings.Join(words[:last], ", "), words[last])
}

// runListing shows a listing.
func (l *lists) runListing(ctx context.Context, one *listing, names []string) error {
	if one.unlabelled && (l.Text != "" || len(l.columns) > 0 || l.all) {
		return cli.Usagef("%s have no labels: leave --selector, --label-columns and --show-labels out", one.words[0])
	}
	return one.run(l, ctx, names)
}

// newReader reads the namespaces that are asked for.
func (l *lists) newReader() (hub.Reader, error) {
	reader, err := base.NewReader(l.Factory)
	if l.allNamespaces {
		reader.Namespace = ""
	}
	return reader, err
}

// rowsOf is how objects of one kind are read and shown.
type rowsOf[T client.Object, R any] struct {
	// word is what users call one of them, words what they call all; none is said if there are none.
	word, words, none string
	read              func(hub.Reader, context.Context) ([]T, error)
	row               func(object T, now time.Time) R
	columns           []fleetview.Column[R]
	labels            func(R) map[string]string
}

// run reads and shows objects of one kind: all, or those that are named.
func (r rowsOf[T, R]) run(l *lists, ctx context.Context, names []string) error {
	reader, err := l.newReader()
	if err != nil {
		return err
	}
	var all []T
	err = l.Factory.Patiently(l.Streams, "reading the "+r.words, func() (err error) {
		all, err = r.read(reader, ctx)
		return err
	})
	if err == nil && len(all) == 0 {
		err = reader.CheckHub(ctx)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(object T) bool { return namesObject(name, object) }) {
			return fmt.Errorf("there is no %s named %q; kubectl fleet get lists what there is", r.word, name)
		}
	}
	rows := []R{}
	objects := []client.Object{}
	for _, object := range all {
		named := len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return namesObject(name, object) })
		if named && l.Selects(object.GetLabels()) {
			rows = append(rows, r.row(object, l.Factory.Clock.Now()))
			objects = append(objects, object)
		}
	}
	none := r.none
	if l.Text != "" {
		none = fmt.Sprintf("No %s with labels %s.", r.words, l.Text)
	}
	return base.Show(&l.Viewing, listOf(objects), slices.Concat(r.columns, labelColumns(&l.labelled, false, r.labels)), rows, none)
}

// namesObject reports whether a user means an object by a name, with or without its kind or its namespace before it.
func namesObject(name string, object client.Object) bool {
	return name == object.GetName() || strings.HasSuffix(name, "/"+object.GetName())
}
