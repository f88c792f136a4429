package hub

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
)

// Scope is the namespace that names are looked up in.
type Scope struct {
	Namespace string
	// Named says that the user named it; otherwise a name means a cluster-scoped object.
	Named bool
}

// Found is the object a name means: exactly one of the fields is set.
type Found struct {
	Placement *Placement
	Run       *Run
	Member    *clusterv1beta1.MemberCluster
}

// Ref names the object.
func (f Found) Ref() Ref {
	switch {
	case f.Placement != nil:
		return f.Placement.Ref
	case f.Run != nil:
		return f.Run.Ref
	case f.Member != nil:
		return Ref{Kind: KindMember, Name: f.Member.Name}
	default:
		return Ref{}
	}
}

// Object returns the object itself; nil if there is none.
func (f Found) Object() client.Object {
	switch {
	case f.Placement != nil:
		return f.Placement.Object
	case f.Run != nil:
		return f.Run.Object
	case f.Member != nil:
		return f.Member
	}
	return nil
}

// word is what a prefix such as crp means.
type word struct {
	kind Kind
	// cluster and namespaced say that the prefix means one scope only.
	cluster, namespaced bool
}

// words are the prefixes of names.
var words = map[string]word{
	"placement": {kind: KindPlacement}, "placements": {kind: KindPlacement},
	"crp": {kind: KindPlacement, cluster: true}, "clusterresourceplacement": {kind: KindPlacement, cluster: true},
	"clusterresourceplacements": {kind: KindPlacement, cluster: true},
	"rp":                        {kind: KindPlacement, namespaced: true}, "resourceplacement": {kind: KindPlacement, namespaced: true},
	"resourceplacements": {kind: KindPlacement, namespaced: true},
	"run":                {kind: KindRun}, "runs": {kind: KindRun},
	"csur": {kind: KindRun, cluster: true}, "crsur": {kind: KindRun, cluster: true}, "clusterstagedupdaterun": {kind: KindRun, cluster: true},
	"clusterstagedupdateruns": {kind: KindRun, cluster: true},
	"sur":                     {kind: KindRun, namespaced: true}, "stagedupdaterun": {kind: KindRun, namespaced: true},
	"stagedupdateruns": {kind: KindRun, namespaced: true},
	"member":           {kind: KindMember}, "members": {kind: KindMember}, "mc": {kind: KindMember}, "cluster": {kind: KindMember},
	"membercluster": {kind: KindMember}, "memberclusters": {kind: KindMember},
}

// Parse reads what a user calls an object by: run/NAME, or NAME for any of the kinds. It returns the objects it can mean.
func Parse(arg string, scope Scope, kinds ...Kind) ([]Ref, error) {
	prefix, name, qualified := strings.Cut(arg, "/")
	if !qualified {
		if arg == "" {
			return nil, errors.New("an empty name names nothing")
		}
		refs := make([]Ref, 0, len(kinds))
		for _, kind := range kinds {
			refs = append(refs, refIn(word{kind: kind}, scope, arg))
		}
		return refs, nil
	}
	prefix, _, _ = strings.Cut(strings.ToLower(prefix), ".") // as in clusterresourceplacement.placement.kubernetes-fleet.io
	meant, ok := words[prefix]
	if !ok || !slices.Contains(kinds, meant.kind) {
		return nil, fmt.Errorf("%q: %q is not a kind this command is about; use %s", arg, prefix, exampleNames(kinds))
	}
	if name == "" {
		return nil, fmt.Errorf("%q: the name is missing behind the slash", arg)
	}
	return []Ref{refIn(meant, scope, name)}, nil
}

func refIn(meant word, scope Scope, name string) Ref {
	ref := Ref{Kind: meant.kind, Name: name}
	if meant.kind != KindMember && (meant.namespaced || scope.Named && !meant.cluster) {
		ref.Namespace = scope.Namespace
	}
	return ref
}

func exampleNames(kinds []Kind) string {
	var shown []string
	for _, kind := range kinds {
		shown = append(shown, string(kind)+"/NAME")
	}
	return strings.Join(shown, " or ")
}

// Find reads the one object that a user means.
func (r Reader) Find(ctx context.Context, arg string, scope Scope, kinds ...Kind) (Found, error) {
	refs, err := Parse(arg, scope, kinds...)
	if err != nil {
		return Found{}, err
	}
	var found []Found
	var refused error
	for _, ref := range refs {
		one, err := r.getObject(ctx, ref)
		switch {
		case err == nil:
			found = append(found, one)
		case apierrors.IsNotFound(err) || Unserved(err):
		case apierrors.IsForbidden(err):
			refused = fmt.Errorf("reading %s: %w", ref, err) // the name may mean something that may be read
		default:
			return Found{}, fmt.Errorf("reading %s: %w", ref, err)
		}
	}
	return r.onlyOne(ctx, arg, refs, found, refused)
}

// onlyOne returns what was found if that is one object. refused is why an object that the name may mean could not be read.
func (r Reader) onlyOne(ctx context.Context, arg string, refs []Ref, found []Found, refused error) (Found, error) {
	switch len(found) {
	case 0:
		if refused != nil {
			return Found{}, refused
		}
		if err := r.CheckHub(ctx); err != nil {
			return Found{}, err
		}
		return Found{}, fmt.Errorf("there is no %s; kubectl fleet get lists what there is", describeMissing(refs))
	case 1:
		return found[0], nil
	default:
		return Found{}, fmt.Errorf("%q is ambiguous: say %s or %s", arg, found[0].Ref(), found[1].Ref())
	}
}

func describeMissing(refs []Ref) string {
	var kinds []string
	for _, ref := range refs {
		kinds = append(kinds, string(ref.Kind))
	}
	text := fmt.Sprintf("%s %q", strings.Join(kinds, " or "), refs[0].Name)
	if refs[0].Namespace != "" {
		text += fmt.Sprintf(" in namespace %q", refs[0].Namespace)
	}
	return text
}

func (r Reader) getObject(ctx context.Context, ref Ref) (Found, error) {
	switch ref.Kind {
	case KindPlacement:
		p, err := r.Placement(ctx, ref)
		return Found{Placement: &p}, err
	case KindRun:
		run, err := r.Run(ctx, ref)
		return Found{Run: &run}, err
	default:
		member := &clusterv1beta1.MemberCluster{}
		return Found{Member: member}, r.Get(ctx, ref.key(), member)
	}
}

func (r Ref) key() client.ObjectKey { return r.scope().Key(r.Name) }

func (r Ref) scope() placementv1beta1.Scope { return placementv1beta1.Scope{Namespace: r.Namespace} }

// Placement reads a placement.
func (r Reader) Placement(ctx context.Context, ref Ref) (Placement, error) {
	p := ref.scope().NewPlacement(ref.Name)
	err := r.Get(ctx, ref.key(), p)
	return PlacementOf(p), err
}

// Run reads a staged update run.
func (r Reader) Run(ctx context.Context, ref Ref) (Run, error) {
	run := ref.scope().NewUpdateRun(ref.Name)
	err := r.Get(ctx, ref.key(), run)
	return RunOf(run), err
}
