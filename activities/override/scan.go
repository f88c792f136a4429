package override

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// scanner walks through JSON that is known to be valid.
type scanner struct {
	text []byte
	at   int
}

// splitLevel reads one level of a value: what is inside an object or a list stays text.
func splitLevel(text []byte) *content {
	s := &scanner{text: text}
	switch s.nextByte() {
	case '{':
		return &content{shape: shapeObject, members: s.readMembers()}
	case '[':
		return &content{shape: shapeList, items: s.readItems()}
	default:
		return &content{shape: shapeScalar}
	}
}

// nextByte goes past space and returns the byte that comes after it; 0 at the end.
func (s *scanner) nextByte() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// readMembers reads the fields of the object that begins here.
func (s *scanner) readMembers() []*member {
	var members []*member
	s.at++ // {
	for s.nextByte() != '}' {
		label := s.skipValue()
		s.nextByte()
		s.at++ // :
		members = append(members, &member{key: unquoteString(label), label: label, value: newNode(s.skipValue())})
		if s.nextByte() == ',' {
			s.at++
		}
	}
	slices.SortStableFunc(members, func(a, b *member) int { return cmp.Compare(a.key, b.key) })
	return lastOfEach(members)
}

// lastOfEach leaves out a field that comes again later in the object, as every decoder of
// Kubernetes does.
func lastOfEach(members []*member) []*member {
	kept := members[:0]
	for i, m := range members {
		if i+1 == len(members) || members[i+1].key != m.key {
			kept = append(kept, m)
		}
	}
	return kept
}

// readItems reads the elements of the list that begins here.
func (s *scanner) readItems() []*node {
	var items []*node
	s.at++ // [
	for s.nextByte() != ']' {
		items = append(items, newNode(s.skipValue()))
		if s.nextByte() == ',' {
			s.at++
		}
	}
	return items
}

// skipValue goes past the value that begins here, after space, and returns its text.
func (s *scanner) skipValue() []byte {
	first := s.nextByte()
	begin := s.at
	switch first {
	case '"':
		s.pastString()
	case '{', '[':
		s.pastNested()
	default:
		s.pastLiteral()
	}
	return s.text[begin:s.at:s.at]
}

// pastLiteral goes past a number, true, false or null.
func (s *scanner) pastLiteral() {
	for ; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
			return
		}
	}
}

func (s *scanner) pastString() {
	for s.at++; s.text[s.at] != '"'; s.at++ {
		if s.text[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

func (s *scanner) pastNested() {
	depth := 0
	for {
		switch s.text[s.at] {
		case '"':
			s.pastString()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
}

// unquoteString decodes a JSON string.
func unquoteString(text []byte) string {
	inside := text[1 : len(text)-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	var decoded string
	if err := json.Unmarshal(text, &decoded); err != nil {
		panic(err) // the text was checked before
	}
	return decoded
}

// decodeJSON reads JSON and leaves numbers as they are written.
func decodeJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return value, nil
}
