package override

import (
	"fmt"
	"slices"
	"strings"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Patch is what a Set does on one cluster. It can be applied to many objects at the same time.
type Patch struct {
	set   *Set
	rules [][]clusterRule // of each override, those for the cluster
}

// clusterRule is a rule as it is on one cluster.
type clusterRule struct {
	position   int // in the override
	deletes    bool
	broken     *problem
	operations []operation
}

// On picks the rules for a cluster and fills in what depends on it.
func (s *Set) On(cluster Cluster) *Patch {
	p := &Patch{set: s, rules: make([][]clusterRule, len(s.rules))}
	for i, rules := range s.rules {
		for j := range rules {
			if r := &rules[j]; r.clusters.includesCluster(cluster) {
				p.rules[i] = append(p.rules[i], clusterRule{position: j, deletes: r.deletes, broken: r.broken, operations: r.onCluster(cluster)})
			}
		}
	}
	return p
}

func (r *rule) onCluster(cluster Cluster) []operation {
	if !r.variable {
		return r.operations
	}
	operations := make([]operation, len(r.operations))
	for i := range r.operations {
		operations[i] = r.operations[i].onCluster(cluster)
	}
	return operations
}

// Result is what becomes of an object on a cluster.
type Result struct {
	// Manifest is the object as it has to be there. If no rule changes it, it is the manifest
	// it came with.
	Manifest []byte
	// Removed says that the object must not be there; there is no manifest then.
	Removed bool
}

// Apply changes an object by the rules that select it. A rule that deletes it has the last
// word, whatever others do to it. The error is an *Error.
func (p *Patch) Apply(o *Object) (Result, error) {
	var buffer [4]mention
	mentions := p.set.index.findMentions(buffer[:0], o.id)
	if p.deletesObject(mentions) {
		return Result{Removed: true}, nil
	}
	root := o.root
	var last *clusterRule // that changed the object, and where it is mentioned
	var lastOf mention
	for i, m := range mentions {
		if i > 0 && mentions[i-1].override == m.override {
			continue // selected twice, changed once
		}
		for j := range p.rules[m.override] {
			r := &p.rules[m.override][j]
			changed, at, failed := r.applyRule(root)
			if failed != nil {
				return Result{}, p.describeFailure(o, m, r, at, failed)
			}
			if changed != root {
				root = changed
				last = r
				lastOf = m
			}
		}
	}
	if root == o.root {
		return Result{Manifest: o.manifest}, nil
	}
	manifest := root.appendTo(make([]byte, 0, len(o.manifest)+len(o.manifest)/8+64))
	if len(manifest) > sizeLimit && len(manifest) > len(o.manifest) {
		return Result{}, p.describeFailure(o, lastOf, last, noOperation, &problem{
			text: fmt.Sprintf("the object grows from %d to %d bytes, and no cluster takes more than %d", len(o.manifest), len(manifest),
				sizeLimit),
			advice: "add less to it",
		})
	}
	return Result{Manifest: manifest}, nil
}

// LastChange returns the override that was the last to change a field of an object, by the names on the path to it; false if
// none does, or if the rules cannot be carried out.
func (p *Patch) LastChange(o *Object, path []string) (source Source, found bool) {
	var buffer [4]mention
	root, value := o.root, fieldAt(o.root, path)
	mentions := p.set.index.findMentions(buffer[:0], o.id)
	for i, m := range mentions {
		if i > 0 && mentions[i-1].override == m.override {
			continue // as in Apply
		}
		for j := range p.rules[m.override] {
			changed, _, failed := p.rules[m.override][j].applyRule(root)
			if failed != nil {
				return Source{}, false
			}
			root = changed
			if now := fieldAt(root, path); now != value {
				value = now
				source = p.set.specs[m.override].source
				found = true
			}
		}
	}
	return source, found
}

// fieldAt returns what an object says in a field, as JSON; empty if it has no such field.
func fieldAt(n *node, path []string) string {
	for _, name := range path {
		inner := n.splitContent()
		if inner.shape != shapeObject {
			return ""
		}
		if n = inner.findField(name); n == nil {
			return ""
		}
	}
	return string(n.appendTo(nil))
}

// sizeLimit is how large an object can be in bytes, by what etcd takes.
const sizeLimit = 1536 * 1024

func (p *Patch) deletesObject(mentions []mention) bool {
	return slices.ContainsFunc(mentions, func(m mention) bool {
		return slices.ContainsFunc(p.rules[m.override], func(r clusterRule) bool { return r.deletes && r.broken == nil })
	})
}

// applyRule carries out the operations of the rule. If one fails, it says which: noOperation, if
// it is the rule as a whole.
func (r *clusterRule) applyRule(root *node) (*node, int, *problem) {
	if r.broken != nil {
		return nil, noOperation, r.broken
	}
	for i := range r.operations {
		op := &r.operations[i]
		if op.broken != nil {
			return nil, i, op.broken
		}
		changed, failed := op.editNode(root, 0)
		if failed != nil {
			return nil, i, failed
		}
		root = changed
	}
	return root, noOperation, nil
}

func (p *Patch) describeFailure(o *Object, m mention, r *clusterRule, at int, failed *problem) *Error {
	e := &Error{
		Override: p.set.specs[m.override].source, Rule: r.position, Operation: at,
		Object: o.Identifier(), Problem: failed.text, Advice: failed.advice,
	}
	if at != noOperation {
		e.Path = r.operations[at].written
	}
	return e
}

// noOperation stands for the position of an operation where there is none.
const noOperation = -1

// Error says why an override cannot be applied to an object on a cluster. It is a mistake of
// the user: trying again does not help.
type Error struct {
	Override Source
	// Rule and Operation are positions in the override and in the rule. Operation is -1 if the
	// rule as a whole cannot be carried out.
	Rule, Operation int
	// Path of the operation, if there is one.
	Path   string
	Object placementv1beta1.ResourceIdentifier
	// Problem says what is wrong, Advice what to do about it.
	Problem, Advice string
}

// Error begins with what is wrong, so that a search for KubeFleet's words finds it.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.Problem)
	fmt.Fprintf(&text, " (overrideRules[%d]", e.Rule)
	if e.Operation != noOperation {
		fmt.Fprintf(&text, ".jsonPatchOverrides[%d]", e.Operation)
	}
	scope := placementv1beta1.Scope{Namespace: e.Object.Namespace}
	fmt.Fprintf(&text, " of %s on %s %s%s)", e.Override, e.Object.Kind, scope, e.Object.Name)
	if e.Advice != "" {
		text.WriteString(": " + e.Advice)
	}
	return text.String()
}
