// Package parts knows which parts of a page a browser has, so that it is sent only what is different: parts, or elements in them. It is pure.
package parts

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"maps"
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
	// cuts are elements in it that can be sent alone, each with an id of its own; tail is what is behind the last of them.
	cuts []cut
	tail string
}

// cut is an element that can be sent alone, with what is between it and the one before.
type cut struct{ lead, id, html string }

// between is what stands before a cut that may come and go: it is one of a list, and not the first.
const between = "\n"

// Apart is where templates begin and end what can be sent alone. No text of an object has this character: html/template replaces it.
const Apart = "\x00"

// Cut takes the marks out of what a template has written, and what cannot be printed: who writes a message must not be able to turn the
// direction of what is read before an approval.
func Cut(id, written string) Part {
	p := Part{ID: id}
	var whole strings.Builder
	for i, text := range strings.Split(written, Apart) {
		text = tree.Printable(text)
		whole.WriteString(text)
		if i%2 == 0 {
			p.tail = text
			continue
		}
		_, after, _ := strings.Cut(text, `id="`)
		name, _, _ := strings.Cut(after, `"`)
		p.cuts = append(p.cuts, cut{p.tail, name, text})
	}
	p.HTML = template.HTML(whole.String()) //nolint:gosec // html/template has written it
	return p
}

// Swap is what replaces the part in a browser.
func (p Part) Swap() string {
	return fmt.Sprintf("<div id=%q hx-swap-oob=\"outerMorph\">%s</div>\n", p.ID, p.HTML)
}

// replaceElement returns what replaces the element in a browser. A part of a table is nothing outside of one, unless it is told where it goes.
func (c cut) replaceElement() string {
	if tag, _, _ := strings.Cut(c.html, " "); tag == "<thead" || tag == "<tbody" || tag == "<tr" {
		return partial(c.id, "outerMorph", c.html)
	}
	name := fmt.Sprintf("id=%q", c.id)
	return strings.Replace(c.html, name, name+` hx-swap-oob="outerMorph"`, 1) + "\n"
}

// partial is what a browser does at an element.
func partial(id, how, html string) string {
	return fmt.Sprintf("<hx-partial hx-target=\"[id='%s']\" hx-swap=%q>%s</hx-partial>\n", id, how, html)
}

// outline is how a part is made: the names of its cuts, with the digests of what is before each and of what is behind all.
type outline struct {
	ids   []string
	leads map[string]string
	tail  string
}

func (p Part) outline() outline {
	o := outline{leads: map[string]string{}, tail: digestOf(p.tail)}
	for _, one := range p.cuts {
		o.ids = append(o.ids, one.id)
		o.leads[one.id] = digestOf(one.lead)
	}
	return o
}

// isLike reports whether an outline is another one except for members of lists.
func (o outline) isLike(other outline) bool {
	rests := func(of, in outline) (kept []string, is bool) {
		member := digestOf(between)
		for _, id := range of.ids {
			switch lead, is := in.leads[id]; {
			case is && lead == of.leads[id]:
				kept = append(kept, id)
			case is || of.leads[id] != member || len(kept) == 0:
				return nil, false
			}
		}
		return kept, true
	}
	kept, is := rests(o, other)
	same, isToo := rests(other, o)
	return is && isToo && o.tail == other.tail && slices.Equal(kept, same)
}

// Sent is what a browser has of a page.
type Sent struct {
	// parts are the digests of the parts, within, by part, those of what can be sent of it alone, and outlines how each part is made.
	parts    map[string]string
	within   map[string]map[string]string
	outlines map[string]outline
}

// Since returns what a frame has left a browser with; nothing if the text names no frame.
func Since(frame string) *Sent {
	s := &Sent{parts: map[string]string{}, within: map[string]map[string]string{}, outlines: map[string]outline{}}
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
	now := map[string]string{}
	for _, one := range p.cuts {
		now[one.id] = digestOf(one.html)
	}
	s.within[p.ID] = now
	was := s.outlines[p.ID]
	outline := p.outline()
	s.outlines[p.ID] = outline
	switch {
	case !differs:
		return ""
	case !known || !was.isLike(outline):
		return p.Swap()
	}
	return p.changesBetween(before, now)
}

// changesBetween returns what brings a browser from some of the cuts to those that there are now, each by its digest.
func (p Part) changesBetween(before, now map[string]string) string {
	var out, come strings.Builder
	after := ""
	flush := func() {
		if come.Len() > 0 {
			out.WriteString(partial(after, "afterend", come.String()))
			come.Reset()
		}
	}
	for _, one := range p.cuts {
		digest, there := before[one.id]
		if !there {
			come.WriteString(one.html)
			continue
		}
		flush()
		after = one.id
		if digest != now[one.id] {
			out.WriteString(one.replaceElement())
		}
	}
	flush()
	for _, id := range slices.Sorted(maps.Keys(before)) {
		if _, stays := now[id]; !stays {
			out.WriteString(partial(id, "delete", ""))
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
