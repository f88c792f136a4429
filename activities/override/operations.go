package override

import (
	"fmt"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// problem is why something cannot be done, with what to do about it, both for the user.
type problem struct {
	// text says what is wrong, in KubeFleet's words where it has some.
	text string
	// advice says what to do; it can be empty.
	advice string
}

// editNode carries out the operation on what is at a depth of its path. As RFC 6902 asks for, it
// fails if the place is missing, be it the target of a removal or replacement, or what an
// addition adds to.
func (op *operation) editNode(n *node, depth int) (*node, *problem) {
	inner := n.splitContent()
	name := op.path.names[depth]
	if inner.shape == shapeScalar {
		return nil, op.missingPlace(fmt.Sprintf("%s is neither an object nor a list and nothing can be inside it: correct the path",
			op.path.prefixTo(depth)))
	}
	if depth == len(op.path.names)-1 {
		if inner.shape == shapeList {
			return op.editList(inner, name)
		}
		return op.editObject(inner, name)
	}
	if inner.shape == shapeList {
		at, found := parsePosition(name)
		if !found || at >= len(inner.items) {
			return nil, op.beyondList(inner, depth)
		}
		changed, failed := op.editNode(inner.items[at], depth+1)
		if failed != nil {
			return nil, failed
		}
		return inner.withItems(at, at+1, changed), nil
	}
	next := inner.findField(name)
	if next == nil {
		return nil, op.missingPlace(fmt.Sprintf("the object has no %s: add that first, or as a whole", op.path.prefixTo(depth+1)))
	}
	changed, failed := op.editNode(next, depth+1)
	if failed != nil {
		return nil, failed
	}
	return inner.withField(name, changed), nil
}

// editObject carries out the operation on a field.
func (op *operation) editObject(inner *content, key string) (*node, *problem) {
	at, found := inner.searchField(key)
	switch {
	case op.operator == placementv1beta1.JSONPatchOverrideOpAdd:
		return inner.withField(key, op.value), nil
	case !found:
		return nil, op.missingPlace(fmt.Sprintf("the object has no %s: correct the path, or leave the operation out",
			op.path.prefixTo(len(op.path.names))))
	case op.operator == placementv1beta1.JSONPatchOverrideOpReplace:
		return inner.withField(key, op.value), nil
	default:
		return inner.withoutField(at), nil
	}
}

// editList carries out the operation on an element.
func (op *operation) editList(inner *content, name string) (*node, *problem) {
	adds := op.operator == placementv1beta1.JSONPatchOverrideOpAdd
	if adds && name == "-" {
		return inner.withItems(len(inner.items), len(inner.items), op.value), nil
	}
	at, found := parsePosition(name)
	switch {
	case found && adds && at <= len(inner.items):
		return inner.withItems(at, at, op.value), nil
	case !found || adds || at >= len(inner.items):
		return nil, op.beyondList(inner, len(op.path.names)-1)
	case op.operator == placementv1beta1.JSONPatchOverrideOpReplace:
		return inner.withItems(at, at+1, op.value), nil
	default:
		return inner.withItems(at, at+1), nil
	}
}

func (op *operation) missingPlace(advice string) *problem {
	return &problem{text: fmt.Sprintf("%s operation does not apply: doc is missing path: %q: missing value", op.operator, op.written),
		advice: advice}
}

func (op *operation) beyondList(inner *content, depth int) *problem {
	where := "the object"
	if depth > 0 {
		where = op.path.prefixTo(depth)
	}
	return op.missingPlace(fmt.Sprintf("%s is a list of %d and has no element %q: elements count from 0, and only add can use - for the place behind the last",
		where, len(inner.items), op.path.written[depth]))
}
