package override

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync/atomic"
)

// node is a JSON value that never changes: an edit makes new nodes on the way to what it
// changes and shares the others. What no path leads into stays text, is never decoded, and is
// written as it was read; that is what makes patching one object for many clusters cheap.
type node struct {
	// text is the value as JSON; nil if an edit made the node.
	text []byte
	// inner is what is inside, read at the first look. It does no harm if two goroutines
	// read it at the same time.
	inner atomic.Pointer[content]
}

type shape int

const (
	shapeScalar shape = iota
	shapeObject
	shapeList
)

// content is what is inside a value.
type content struct {
	shape   shape
	members []*member // of an object, ordered by key
	items   []*node   // of a list
}

// member is a field of an object. It never changes.
type member struct {
	key string
	// label is the key as JSON.
	label []byte
	value *node
}

// newNode makes a node of valid JSON without space around it.
func newNode(text []byte) *node { return &node{text: text} }

// composeNode makes a node of what is inside.
func composeNode(inner content) *node {
	made := &struct {
		node  node
		inner content
	}{inner: inner} // both at once, it is half the work
	made.node.inner.Store(&made.inner)
	return &made.node
}

func (n *node) splitContent() *content {
	if inner := n.inner.Load(); inner != nil {
		return inner
	}
	inner := splitLevel(n.text)
	n.inner.Store(inner)
	return inner
}

// findField returns the field of an object, or nil.
func (c *content) findField(key string) *node {
	if at, found := c.searchField(key); found {
		return c.members[at].value
	}
	return nil
}

func (c *content) searchField(key string) (int, bool) {
	return slices.BinarySearchFunc(c.members, key, func(m *member, key string) int { return cmp.Compare(m.key, key) })
}

// asString returns the value if it is a string, else an empty one.
func (n *node) asString() string {
	if n == nil || len(n.text) == 0 || n.text[0] != '"' {
		return ""
	}
	return unquoteString(n.text)
}

// withField returns the object with a field set.
func (c *content) withField(key string, value *node) *node {
	at, found := c.searchField(key)
	if found {
		members := slices.Clone(c.members)
		members[at] = &member{key: key, label: c.members[at].label, value: value}
		return composeNode(content{shape: shapeObject, members: members})
	}
	members := make([]*member, 0, len(c.members)+1)
	members = append(members, c.members[:at]...)
	members = append(members, &member{key: key, label: quoteString(key), value: value})
	members = append(members, c.members[at:]...)
	return composeNode(content{shape: shapeObject, members: members})
}

// withoutField returns the object without the field at a position.
func (c *content) withoutField(at int) *node {
	return composeNode(content{shape: shapeObject, members: withoutIndex(c.members, at)})
}

// withItem returns the list with an element set.
func (c *content) withItem(at int, value *node) *node {
	items := slices.Clone(c.items)
	items[at] = value
	return composeNode(content{shape: shapeList, items: items})
}

// withInserted returns the list with an element inserted.
func (c *content) withInserted(at int, value *node) *node {
	items := make([]*node, 0, len(c.items)+1)
	items = append(items, c.items[:at]...)
	items = append(items, value)
	items = append(items, c.items[at:]...)
	return composeNode(content{shape: shapeList, items: items})
}

// withoutItem returns the list without an element.
func (c *content) withoutItem(at int) *node {
	return composeNode(content{shape: shapeList, items: withoutIndex(c.items, at)})
}

func withoutIndex[T any](all []T, at int) []T {
	rest := make([]T, 0, len(all)-1)
	rest = append(rest, all[:at]...)
	return append(rest, all[at+1:]...)
}

// appendTo writes the value as JSON.
func (n *node) appendTo(to []byte) []byte {
	if n.text != nil {
		return append(to, n.text...)
	}
	inner := n.splitContent()
	if inner.shape == shapeList {
		to = append(to, '[')
		for i, item := range inner.items {
			if i > 0 {
				to = append(to, ',')
			}
			to = item.appendTo(to)
		}
		return append(to, ']')
	}
	to = append(to, '{')
	for i, m := range inner.members {
		if i > 0 {
			to = append(to, ',')
		}
		to = append(to, m.label...)
		to = append(to, ':')
		to = m.value.appendTo(to)
	}
	return append(to, '}')
}

func quoteString(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always encode
	}
	return quoted
}
