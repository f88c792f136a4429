// Package parts knows which parts of a page a browser has, so that it is sent only what is different: parts, or elements in them. It is pure.
package parts

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

// maxParts is how many parts a page may have.
const maxParts = 20

// Part is a part of a page.
type Part struct {
	ID   string
	HTML template.HTML
	// cuts are elements in it that can be sent alone, each with an id of its own; rest is what is around them.
	cuts []Part
	rest string
}

// Apart is where templates begin and end what can be sent alone. No text of an object has this character: html/template replaces it.
const Apart = "\x00"

// Cut takes the marks out of what a template has written, and what cannot be printed: who writes a message must not be able to turn the
// direction of what is read before an approval.
func Cut(id, written string) Part {
	p := Part{ID: id}
	var whole, rest strings.Builder
	for i, text := range strings.Split(written, Apart) {
		text = tree.Printable(text)
		whole.WriteString(text)
		if i%2 == 0 {
			rest.WriteString(text)
			continue
		}
		_, after, _ := strings.Cut(text, `id="`)
		name, _, _ := strings.Cut(after, `"`)
		p.cuts = append(p.cuts, Part{ID: name, HTML: template.HTML(text)}) //nolint:gosec // html/template has written it
		rest.WriteString(Apart + name)
	}
	p.HTML = template.HTML(whole.String()) //nolint:gosec // as above
	p.rest = rest.String()
	return p
}

// Swap is what replaces the part in a browser.
func (p Part) Swap() string {
	return fmt.Sprintf("<div id=%q hx-swap-oob=\"outerMorph\">%s</div>\n", p.ID, p.HTML)
}

// Sent is what a browser has of a page.
type Sent struct {
	// parts are the digests of the parts, and within, by part, those of what can be sent of it alone; what is around that has no name
	// there.
	parts  map[string]string
	within map[string]map[string]string
}

// Since returns what a frame has left a browser with; nothing if the text names no frame.
func Since(frame string) *Sent {
	s := &Sent{parts: map[string]string{}, within: map[string]map[string]string{}}
	for one := range strings.SplitSeq(frame, ",") {
		if id, digest, is := strings.Cut(one, "="); is && len(s.parts) < maxParts {
			s.parts[id] = digest
		}
	}
	return s
}

// ID names the frame by what is in it, so that any dashboard can go on from it. The part that the browser itself writes is sent anew.
func (s *Sent) ID(own string) string {
	var all []string
	for id, digest := range s.parts {
		if id != own {
			all = append(all, id+"="+digest)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// digestBytes are enough to tell the states of a part of one page apart.
const digestBytes = 9

func digestOf(html string) string {
	sum := sha256.Sum256([]byte(html))
	return base64.RawURLEncoding.EncodeToString(sum[:digestBytes])
}

// Changes returns what of a part is not as the browser has it, and takes it as sent: all of it, or only what is different in it.
func (s *Sent) Changes(p Part) string {
	digest := digestOf(string(p.HTML))
	differs := s.parts[p.ID] != digest
	s.parts[p.ID] = digest
	before, known := s.within[p.ID]
	if !differs && (known || len(p.cuts) == 0) {
		return ""
	}
	now := map[string]string{"": digestOf(p.rest)}
	for _, one := range p.cuts {
		now[one.ID] = digestOf(string(one.HTML))
	}
	s.within[p.ID] = now
	switch {
	case !differs:
		return ""
	case before[""] != now[""]:
		return p.Swap()
	}
	var out strings.Builder
	for _, one := range p.cuts {
		if before[one.ID] != now[one.ID] {
			name := fmt.Sprintf("id=%q", one.ID)
			out.WriteString(strings.Replace(string(one.HTML), name, name+` hx-swap-oob="outerMorph"`, 1) + "\n")
		}
	}
	return out.String()
}

// Frame returns an event with what of the parts is not as the browser has it; empty if all is. The browser writes the part own itself.
func (s *Sent) Frame(own string, all []Part) string {
	var out strings.Builder
	for _, part := range all {
		out.WriteString(s.Changes(part))
	}
	if out.Len() == 0 {
		return ""
	}
	return "id: " + s.ID(own) + "\ndata: " + strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "\ndata: ") + "\n\n"
}
