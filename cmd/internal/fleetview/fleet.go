package fleetview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// Fleet is what was read of members, placements and runs.
type Fleet struct {
	Members    []clusterv1beta1.MemberCluster
	Placements []hub.Placement
	Runs       []hub.Run
	// Active are all runs, whatever is shown of them: what a placement is at may be up to one.
	Active []hub.Run
}

// Wanted is which members, placements and runs are to be shown.
type Wanted struct {
	Kinds []hub.Kind
	// Names are of those that are to be shown alone; without any, all are.
	Names []string
	// Selects reports whether an object is to be shown by its labels.
	Selects func(labels map[string]string) bool
}

// Has reports whether objects of a kind are to be shown.
func (w *Wanted) Has(kind hub.Kind) bool { return slices.Contains(w.Kinds, kind) }

// leaveOut has kinds not shown.
func (w *Wanted) leaveOut(kinds ...hub.Kind) {
	w.Kinds = slices.DeleteFunc(w.Kinds, func(kind hub.Kind) bool { return slices.Contains(kinds, kind) })
}

// Read reads what is to be shown. Of what cannot be read nothing is shown, nor of what depends on it, and the error says why. Members that
// may not be read beside others are no error, but said.
func (w *Wanted) Read(ctx context.Context, reader hub.Reader, into *Fleet, say func(sentence string)) error {
	var errs []error
	leaveOut := func(err error, kinds ...hub.Kind) {
		if err != nil {
			w.leaveOut(kinds...)
			errs = append(errs, err)
		}
	}
	var err error
	if w.Has(hub.KindMember) {
		into.Members, err = reader.Members(ctx)
		if apierrors.IsForbidden(err) && reader.Namespace != "" && len(w.Kinds) > 1 {
			w.leaveOut(hub.KindMember)
			say("Members are not shown: you may not read them. The role hub-agent-viewer lets you; an administrator of the hub can bind it")
			err = nil
		}
		leaveOut(err, hub.KindMember)
	}
	if w.Has(hub.KindPlacement) {
		into.Placements, err = reader.Placements(ctx)
		leaveOut(err, hub.KindPlacement)
	}
	if w.Has(hub.KindRun) || w.Has(hub.KindPlacement) {
		into.Runs, err = reader.Runs(ctx)
		into.Active = slices.Clone(into.Runs)
		leaveOut(err, hub.KindRun, hub.KindPlacement) // what a placement is at may be up to a run
	}
	return errors.Join(errs...)
}

// Sort sorts objects by what they are, and leaves out what is not to be shown. What is named may not be there yet.
func (w *Wanted) Sort(objects []client.Object) *Fleet {
	read := &Fleet{}
	for _, object := range objects {
		switch object := object.DeepCopyObject().(type) {
		case *clusterv1beta1.MemberCluster:
			read.Members = append(read.Members, *object)
		case placementv1beta1.PlacementObject:
			read.Placements = append(read.Placements, hub.PlacementOf(object))
		case placementv1beta1.UpdateRunObject:
			read.Active = append(read.Active, hub.RunOf(object))
		}
	}
	if w.Has(hub.KindRun) {
		read.Runs = slices.Clone(read.Active)
	}
	_ = w.Filter(read) // what is named is waited for
	return read
}

// Filter keeps what is to be shown, and misses what is named and not there.
func (w *Wanted) Filter(read *Fleet) error {
	found := map[string]bool{}
	drops := func(kind hub.Kind, name string, labels map[string]string) bool {
		if !w.Selects(labels) {
			return true
		}
		named := slices.Contains(w.Names, name)
		found[name] = found[name] || w.Has(kind) && named
		return len(w.Names) > 0 && !named && (kind != hub.KindRun || w.Has(kind))
	}
	read.Members = slices.DeleteFunc(read.Members, func(m clusterv1beta1.MemberCluster) bool { return drops(hub.KindMember, m.Name, m.Labels) })
	read.Placements = slices.DeleteFunc(read.Placements, func(p hub.Placement) bool {
		return drops(hub.KindPlacement, p.Name, p.Object.GetLabels())
	})
	read.Runs = slices.DeleteFunc(read.Runs, func(r hub.Run) bool { return drops(hub.KindRun, r.Name, r.Object.GetLabels()) })
	for _, name := range w.Names {
		if !found[name] {
			kinds := make([]string, 0, len(w.Kinds))
			for _, kind := range w.Kinds {
				kinds = append(kinds, string(kind))
			}
			return fmt.Errorf("there is no %s named %q; kubectl fleet get lists what there is", strings.Join(kinds, " or "), name)
		}
	}
	return nil
}

// Objects returns what is to be shown of a fleet for programs.
func (w *Wanted) Objects(read *Fleet) []client.Object {
	objects := []client.Object{}
	for i := range read.Members {
		read.Members[i].SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("MemberCluster"))
		objects = append(objects, &read.Members[i])
	}
	for _, p := range read.Placements {
		objects = append(objects, p.Object)
	}
	if w.Has(hub.KindRun) {
		for _, r := range read.Runs {
			objects = append(objects, r.Object)
		}
	}
	return objects
}
