package rehearsal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rehearsals "github.com/fleetflow/fleetflow/activities/rehearsal"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/activities/worksync"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// askedAtOnce bounds how many clusters are asked at the same time.
	askedAtOnce = 16
	// maxFindings is how many findings a status tells apart.
	maxFindings = 20
)

// finding is what the hub knows of clusters without asking them, except for their names.
type finding struct {
	outcome  fleetflowv1alpha1.RehearsalOutcome
	message  string
	notAsked bool
}

// findings has the clusters of each finding. Clusters are asked at the same time.
type findings struct {
	mu  sync.Mutex
	all map[finding][]string
}

func (f *findings) add(cluster string, outcome fleetflowv1alpha1.RehearsalOutcome, notAsked bool, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[finding][]string{}
	}
	key := finding{outcome, rehearsals.Clean(why), notAsked}
	if _, known := f.all[key]; !known && len(f.all) >= maxFindings-4 {
		key.message = "for one of several reasons that there is no room to tell"
	}
	f.all[key] = append(f.all[key], cluster)
}

// tell returns the findings as a status has them.
func (f *findings) tell() []fleetflowv1alpha1.RehearsalFinding {
	var told []fleetflowv1alpha1.RehearsalFinding
	for _, key := range slices.SortedFunc(maps.Keys(f.all), func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.message, b.message))
	}) {
		clusters := f.all[key]
		slices.Sort(clusters)
		told = append(told, fleetflowv1alpha1.RehearsalFinding{
			Outcome: key.outcome, Message: key.message, NotAsked: key.notAsked, Clusters: clusters,
		})
	}
	return told
}

// asker writes the questions of one rehearsal.
type asker struct {
	client    client.Writer
	works     Composer
	clock     clock.PassiveClock
	rehearsal fleetflowv1alpha1.RehearsalObject
	deadline  metav1.Time
	// asked are the clusters that have their question already.
	asked    map[string]bool
	findings findings
	packing  sync.Mutex
	packer   rehearsals.Packer
}

// askAll asks all clusters of a change that are not asked yet. What cannot be asked is a finding; an error says that it is to be
// tried again.
func (a *asker) askAll(ctx context.Context, c change) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(askedAtOnce)
	for _, one := range c.clusters {
		group.Go(func() error {
			err := a.ask(groupCtx, one)
			if err == nil || groupCtx.Err() != nil || a.clock.Now().Before(a.deadline.Time) {
				return err
			}
			a.findings.add(one.name, fleetflowv1alpha1.RehearsalUnknown, true, "it could not be asked: "+err.Error())
			return nil
		})
	}
	return group.Wait()
}

// ask asks one cluster.
func (a *asker) ask(ctx context.Context, c cluster) error {
	composed, err := a.works.Compose(ctx, c.binding)
	if outcome, known := judgeComposition(err); known {
		a.findings.add(c.name, outcome, true, err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("composing the Works of cluster %s: %w", c.name, err)
	}
	for _, held := range []error{composed.HeldBack, composed.Invalid} {
		if held != nil {
			a.findings.add(c.name, fleetflowv1alpha1.RehearsalRefused, false, held.Error())
		}
	}
	if a.asked[c.name] {
		return nil
	}
	asked := &fleetflowv1alpha1.RehearseQuestion{
		Revision: c.revision, Strategy: c.binding.GetBindingSpec().ApplyStrategy, KeepRemoved: workmodel.AbandonsRemoved(c.binding),
	}
	if !asked.KeepRemoved {
		asked.RemovedWorks = composed.Removed
	}
	asked.Works, asked.Manifests, err = a.pack(composed.Works)
	if large, is := errors.AsType[*rehearsals.TooLargeError](err); is {
		a.findings.add(c.name, fleetflowv1alpha1.RehearsalUnknown, true, large.Error())
		return nil
	}
	if err != nil {
		return err
	}
	why, err := a.create(ctx, c.name, rehearsals.NewQuestion(a.rehearsal, c.name, a.deadline, asked))
	if why != "" {
		a.findings.add(c.name, fleetflowv1alpha1.RehearsalUnknown, true, why)
	}
	return err
}

// create stores the question of a cluster. It returns why there can be none, if trying again does not help.
func (a *asker) create(ctx context.Context, cluster string, question *fleetflowv1alpha1.MemberQuestion) (why string, err error) {
	err = a.client.Create(ctx, question)
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return "", nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, "NamespaceTerminating"):
		return "it has left the fleet, or is about to", nil
	case apierrors.IsRequestEntityTooLargeError(err), apierrors.IsInvalid(err):
		return "the hub does not take the question: " + err.Error(), nil
	}
	return "", fmt.Errorf("asking cluster %s: %w", cluster, err)
}

// pack compresses the manifests of Works, one cluster at a time: most have the same, and the packer keeps them.
func (a *asker) pack(works []placementv1beta1.Work) ([]fleetflowv1alpha1.RehearsedWork, []byte, error) {
	a.packing.Lock()
	defer a.packing.Unlock()
	return a.packer.Pack(works)
}

// judgeComposition says what it means for a cluster that its Works cannot be composed. Other errors go away by themselves.
func judgeComposition(err error) (outcome fleetflowv1alpha1.RehearsalOutcome, known bool) {
	if _, is := errors.AsType[*workmodel.OverrideError](err); is {
		return fleetflowv1alpha1.RehearsalRefused, true
	}
	if _, is := errors.AsType[*workmodel.InvalidError](err); is {
		return fleetflowv1alpha1.RehearsalRefused, true
	}
	if _, is := errors.AsType[*worksync.SnapshotMissingError](err); is {
		return fleetflowv1alpha1.RehearsalUnknown, true
	}
	return "", false
}
