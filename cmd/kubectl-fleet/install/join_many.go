package install

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/document"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// joinAtOnce is how many clusters join at the same time.
const joinAtOnce = 5

// joinMany are what `join` was asked for with a file of clusters.
type joinMany struct {
	*joinOptions
	file     string
	all      bool
	parallel int
}

// clusterFile is a file of clusters that are to join.
type clusterFile struct {
	Clusters []clusterEntry `json:"clusters"`
}

// clusterEntry is a cluster that is to join. All but the name may be empty.
type clusterEntry struct {
	Name       string            `json:"name"`
	Context    string            `json:"context,omitempty"`
	Kubeconfig string            `json:"kubeconfig,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Set        []string          `json:"set,omitempty"`
}

func (m *joinMany) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&m.file, "from-file", "", "A file of clusters, all of which join.")
	flags.BoolVar(&m.all, "all", false, "With --from-file: those that have joined, too, which gives them new tokens.")
	flags.IntVar(&m.parallel, "parallel", joinAtOnce, "With --from-file: how many clusters join at the same time.")
}

func (m *joinMany) checkArguments(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("--from-file names the clusters: leave out %q", args[0])
	case m.memberContext != "":
		return errors.New("--from-file names the contexts: leave out --member-context")
	case m.parallel < 1:
		return fmt.Errorf("--parallel %d: at least one cluster joins at a time", m.parallel)
	}
	return nil
}

// decodeClusters decodes a file of clusters, which has no fields but those that are known.
func decodeClusters(content []byte, into *clusterFile) error {
	data, err := document.ToJSON(content)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// readClusters reads and checks a file of clusters. Paths in it are relative to it.
func readClusters(file string) ([]clusterEntry, error) {
	content, err := os.ReadFile(file) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("reading the clusters: %w", err)
	}
	var read clusterFile
	if err := decodeClusters(content, &read); err != nil {
		return nil, cli.Usagef("%s is no file of clusters, which kubectl fleet join --help shows: %v", file, err)
	}
	if len(read.Clusters) == 0 {
		return nil, cli.Usagef("%s has no clusters", file)
	}
	names := map[string]bool{}
	contexts := map[[2]string]string{}
	for i := range read.Clusters {
		entry := &read.Clusters[i]
		entry.Context = cmp.Or(entry.Context, entry.Name)
		if entry.Kubeconfig != "" && !filepath.IsAbs(entry.Kubeconfig) {
			entry.Kubeconfig = filepath.Join(filepath.Dir(file), entry.Kubeconfig)
		}
		if err := entry.checkMember(fmt.Sprintf("%s: clusters[%d]", file, i)); err != nil {
			return nil, err
		}
		at := [2]string{entry.Kubeconfig, entry.Context}
		switch {
		case names[entry.Name]:
			return nil, cli.Usagef("%s: clusters[%d].name: %s is there twice", file, i, entry.Name)
		case contexts[at] != "":
			return nil, cli.Usagef("%s: clusters[%d].context: %s is the context of %s, too", file, i, entry.Context, contexts[at])
		}
		names[entry.Name] = true
		contexts[at] = entry.Name
	}
	return read.Clusters, nil
}

// checkMember refuses what no MemberCluster can have.
func (e *clusterEntry) checkMember(where string) error {
	if problems := validation.IsDNS1123Label(e.Name); len(problems) > 0 {
		return cli.Usagef("%s.name: %q is no name of a member: %s", where, e.Name, strings.Join(problems, "; "))
	}
	if problems := metav1validation.ValidateLabels(e.Labels, field.NewPath("labels")); len(problems) > 0 {
		return cli.Usagef("%s.%s", where, problems[0].Error())
	}
	return nil
}

// takenClusters are clusters that join at the same time, by their uids.
type takenClusters struct {
	mu      sync.Mutex
	members map[string]string
}

// takeCluster notes that a cluster joins as a member, and refuses one that joins as another already.
func (t *takenClusters) takeCluster(uid, member string) error {
	if t == nil || uid == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.members[uid]; other != "" && other != member {
		return fmt.Errorf("it is the cluster of %s in the same file, which has the same uid %s: correct the context of one of them", other, uid)
	}
	t.members[uid] = member
	return nil
}

// joinClusters has the clusters of the file join. Each says one line when it is done.
func (m *joinMany) joinClusters(ctx context.Context) error {
	entries, err := readClusters(m.file)
	if err != nil {
		return err
	}
	if err := m.completeHub(); err != nil {
		return err
	}
	entries, err = m.toJoin(ctx, entries)
	if err != nil {
		return err
	}
	outcome := &joinOutcome{of: len(entries), many: m}
	taken := &takenClusters{members: map[string]string{}}
	group := errgroup.Group{}
	group.SetLimit(m.parallel)
	for i := range entries {
		entry := &entries[i]
		group.Go(func() error {
			select {
			case <-ctx.Done(): // what has not begun is left for the next time
				return nil
			default:
			}
			began := m.Factory.Clock.Now()
			said, err := m.joinOne(ctx, entry, taken)
			outcome.noteMember(entry.Name, said, m.Factory.Clock.Now().Sub(began), err)
			return nil
		})
	}
	_ = group.Wait() // each failure is noted
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return outcome.asError()
}

// toJoin leaves out the clusters that have joined, unless all are asked for.
func (m *joinMany) toJoin(ctx context.Context, entries []clusterEntry) ([]clusterEntry, error) {
	var open []clusterEntry
	for i := range entries {
		member := &clusterv1beta1.MemberCluster{}
		err := m.hub.Get(ctx, client.ObjectKey{Name: entries[i].Name}, member)
		switch {
		case hub.Unserved(err):
			return nil, errNoHub
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading member/%s: %w", entries[i].Name, err)
		case !m.all && !apierrors.IsNotFound(err) && member.DeletionTimestamp == nil &&
			meta.IsStatusConditionTrue(member.Status.Conditions, clusterv1beta1.ConditionTypeJoined):
		default:
			open = append(open, entries[i])
		}
	}
	if left := len(entries) - len(open); left > 0 {
		cli.Printf(m.Streams.Out, "%d of %d have joined before and are left as they are; --all takes them, too\n", left, len(entries))
	}
	return open, nil
}

// joinOne has one cluster join and returns what that says on the way.
func (m *joinMany) joinOne(ctx context.Context, entry *clusterEntry, taken *takenClusters) (said string, err error) {
	var out bytes.Buffer
	one := *m.joinOptions
	one.member = entry.Name
	one.memberContext = entry.Context
	one.kubeconfig = entry.Kubeconfig
	one.labels = entry.Labels
	one.taken = taken
	one.values = append(append([]string{}, m.values...), entry.Set...)
	one.Streams.Out = &out
	one.Streams.ErrOut = &out
	if one.cluster, err = m.clientOfMember(entry.Kubeconfig, entry.Context); err == nil {
		err = one.joinCluster(ctx)
	}
	return out.String(), err
}

// joinOutcome counts what became of the clusters of a file.
type joinOutcome struct {
	many   *joinMany
	of     int
	mu     sync.Mutex
	done   int
	failed []string
}

func (o *joinOutcome) noteMember(member, said string, took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done++
	streams := o.many.Streams
	for line := range strings.Lines(said) {
		if o.many.Dry() || strings.HasPrefix(line, "Warning: ") {
			cli.Printf(streams.ErrOut, "%s: %s", member, line)
		}
	}
	if err != nil {
		o.failed = append(o.failed, member)
		cli.Printf(streams.ErrOut, "[%d/%d] %s: %v\n", o.done, o.of, member, err)
		return
	}
	o.many.Done(streams, "[%d/%d] %s has joined (%s)", o.done, o.of, member, took.Round(100*time.Millisecond))
}

func (o *joinOutcome) asError() error {
	if len(o.failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d clusters have not joined: %s. The same command tries these again", len(o.failed), o.of,
		strings.Join(o.failed, ", "))
}
