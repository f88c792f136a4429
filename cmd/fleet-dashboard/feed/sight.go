package feed

import (
	"maps"
	"slices"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// May says whether a user may list a resource: in all namespaces if none is named.
type May func(group, resource, namespace string) bool

// sight is what a user may see.
type sight struct {
	may    May
	denied []string
}

// scopes are the two resources of a kind that there is in both scopes.
type scopes struct{ what, cluster, namespaced string }

var (
	placements = scopes{"placements", "clusterresourceplacements", "resourceplacements"}
	runs       = scopes{"runs", "clusterstagedupdateruns", "stagedupdateruns"}
	bindings   = scopes{"bindings", "clusterresourcebindings", "resourcebindings"}
	approvals  = scopes{"approval requests", "clusterapprovalrequests", "approvalrequests"}
)

// Of a kind that there is in both scopes, namespaced is what is said of the one that a dashboard may not list, and ofAllNamespaces of the
// one that a user may list in some at most.
const namespaced, ofAllNamespaces = "namespaced ", " of all namespaces"

// Sees reports whether the objects of a kind may be listed.
func (f *Fleet) Sees(what string) bool { return !slices.Contains(f.Denied, what) }

// seesAll reports whether all objects of a kind may be listed, in whatever namespace.
func (f *Fleet) seesAll(kind scopes) bool {
	return f.Sees(kind.what) && f.Sees(namespaced+kind.what) && f.Sees(kind.what+ofAllNamespaces)
}

// seesBindings reports whether the bindings of a namespace, or those of no namespace, may be listed.
func (f *Fleet) seesBindings(namespace string) bool {
	if namespace == "" {
		return f.Sees(bindings.what)
	}
	return f.Sees(namespaced+bindings.what) && !f.unseen[namespace]
}

// sees reports whether a user may list a kind that is in no namespace.
func (s *sight) sees(what, group, resource string) bool {
	if s.may(group, resource, "") {
		return true
	}
	s.denied = append(s.denied, what)
	return false
}

// whereSeen returns what says in which scopes a user may see objects of a kind: its argument is a namespace, or none.
func (s *sight) whereSeen(kind scopes) func(namespace string) bool {
	group := placementv1beta1.GroupVersion.Group
	whole := s.sees(kind.what, group, kind.cluster)
	everywhere := s.may(group, kind.namespaced, "")
	if !everywhere {
		s.denied = append(s.denied, kind.what+ofAllNamespaces)
	}
	in := map[string]bool{"": whole}
	return func(namespace string) bool {
		seen, known := in[namespace]
		if !known {
			seen = everywhere || s.may(group, kind.namespaced, namespace)
			in[namespace] = seen
		}
		return seen
	}
}

// SeenBy returns the part of a picture that a user may see. Kinds that the user may not list are left out and named in Denied; of
// kinds in namespaces, what is in those that the user may list them in is left.
func (f *Fleet) SeenBy(may May) *Fleet {
	s := &sight{may: may}
	placementsIn := s.whereSeen(placements)
	runsIn := s.whereSeen(runs)
	bindingsIn := s.whereSeen(bindings)
	approvalsIn := s.whereSeen(approvals)
	members := s.sees("member clusters", clusterv1beta1.GroupVersion.Group, "memberclusters")
	holds := s.sees("holds", fleetflowv1alpha1.RolloutHolds.Group, fleetflowv1alpha1.RolloutHolds.Resource)
	windows := s.sees("windows", fleetflowv1alpha1.RolloutWindows.Group, fleetflowv1alpha1.RolloutWindows.Resource)
	exemptions := s.sees("exemptions", fleetflowv1alpha1.RolloutExemptions.Group, fleetflowv1alpha1.RolloutExemptions.Resource)
	evictions := s.sees("evictions", placementv1beta1.GroupVersion.Group, "clusterresourceplacementevictions")
	records := s.sees(hub.AuditRecords, fleetflowv1alpha1.GroupVersion.Group, "auditrecords")
	if len(s.denied) == 0 {
		return f
	}
	seen := *f
	seen.worked = &worked{} // it rests on what is seen
	seen.Denied = slices.Concat(f.Denied, s.denied)
	slices.Sort(seen.Denied)
	seen.Denied = slices.Compact(seen.Denied)
	if !members {
		seen.Members = nil
		seen.Clusters = nil
		seen.members = nil
	}
	if !holds {
		seen.Holds, seen.Gates.Holds = nil, nil
	}
	if !windows {
		seen.Gates.Windows = nil
	}
	if !exemptions {
		seen.Gates.Exemptions = nil
	}
	if !evictions {
		seen.Evictions = nil
	}
	if !records {
		seen.records = nil
	}
	seen.Placements = slices.DeleteFunc(slices.Clone(f.Placements), func(p Placement) bool { return !placementsIn(p.Namespace) })
	seen.Runs = slices.DeleteFunc(slices.Clone(f.Runs), func(r Run) bool { return !runsIn(r.Namespace) })
	seen.unseen = map[string]bool{}
	for _, p := range seen.Placements {
		seen.unseen[p.Namespace] = !bindingsIn(p.Namespace)
	}
	seen.bindings = maps.Clone(f.bindings)
	seen.approvals = maps.Clone(f.approvals)
	maps.DeleteFunc(seen.bindings, func(ref hub.Ref, _ []hub.Binding) bool { return !bindingsIn(ref.Namespace) })
	maps.DeleteFunc(seen.approvals, func(ref hub.Ref, _ []hub.Approval) bool { return !approvalsIn(ref.Namespace) })
	return &seen
}
