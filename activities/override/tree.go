package override

import (
	"cmp"
	"encoding/json"
	"maps"
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
	var text string
	mustDecode(n.text, &text)
	return text
}

// withField returns the object with a field set.
func (c *content) withField(key string, value *node) *node {
	at, found := c.searchField(key)
	if found {
		members := slices.Clone(c.members)
		members[at] = &member{key: key, label: c.members[at].label, value: value}
		return composeNode(content{shape: shapeObject, members: members})
	}
	added := []*member{{key: key, label: quoteString(key), value: value}}
	return composeNode(content{shape: shapeObject, members: slices.Concat(c.members[:at], added, c.members[at:])})
}

// withoutField returns the object without the field at a position.
func (c *content) withoutField(at int) *node {
	return composeNode(content{shape: shapeObject, members: slices.Concat(c.members[:at], c.members[at+1:])})
}

// withItems returns the list with items in place of those from one position to another.
func (c *content) withItems(from, to int, items ...*node) *node {
	return composeNode(content{shape: shapeList, items: slices.Concat(c.items[:from], items, c.items[to:])})
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

// splitLevel reads one level of a value: what is inside an object or a list stays text.
func splitLevel(text []byte) *content {
	switch text[0] {
	case '{':
		var fields map[string]json.RawMessage
		mustDecode(text, &fields)
		members := make([]*member, 0, len(fields))
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			members = append(members, &member{key: key, label: quoteString(key), value: newNode(fields[key])})
		}
		return &content{shape: shapeObject, members: members}
	case '[':
		var items []json.RawMessage
		mustDecode(text, &items)
		inner := &content{shape: shapeList}
		for _, item := range items {
			inner.items = append(inner.items, newNode(item))
		}
		return inner
	default:
		return &content{shape: shapeScalar}
	}
}

// mustDecode decodes JSON that is known to be valid and to be of a kind.
func mustDecode(text []byte, into any) {
	if err := json.Unmarshal(text, into); err != nil {
		panic(err)
	}
}

func quoteString(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // strings always encode
	}
	return quoted
}
