package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// maxStreams is how many pages may be kept up to date at a time.
	maxStreams = 500
	// maxStreamsOfUser is how many of one user.
	maxStreamsOfUser = 20
	// quiet is after how long without a change something is sent all the same, so that proxies and browsers know the stream
	// is alive.
	quiet = 15 * time.Second
	// slowest is how long a browser may take for a frame before it is dropped; it comes again by itself.
	slowest = 10 * time.Second
	// maxParts is how many parts a page may have.
	maxParts = 20
	// troublePart is the part that says why what is shown may be old.
	troublePart = "trouble"
	// sessionOver is what a page says that is not kept up to date any more.
	sessionOver = "Your session is over. Reload the page to go on; what you have typed into a form stays if you log in in another tab."
)

// live sends what changes on a page for as long as the browser shows it: at most as often as there are new pictures of the
// fleet, and of the page only the parts that are different.
func (s *Server) live(w http.ResponseWriter, r *http.Request, pages *http.ServeMux) {
	target, refused, status := targetOf(r, pages)
	if refused != "" {
		http.Error(w, refused, status)
		return
	}
	if !s.streams.enter(maxStreams) {
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer s.streams.leave()
	visitor := visitorOf(r.Context())
	if !visitor.Person.streams.enter(maxStreamsOfUser) {
		http.Error(w, "You have too many pages open.", http.StatusServiceUnavailable)
		return
	}
	defer visitor.Person.streams.leave()
	over := make(<-chan time.Time) // never, unless the session ends
	if !visitor.Until.IsZero() {
		timer := s.Clock.NewTimer(visitor.Until.Sub(s.Clock.Now()))
		defer timer.Stop()
		over = timer.C()
	}
	changed, end := s.Feed.Follow()
	defer end()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(time.Time{}) // a stream is longer than a request may take; what has no deadline needs none taken off
	stream := &stream{controller: controller, w: w, sent: partsOf(r.Header.Get("Last-Event-ID")), within: map[string]map[string]string{}}
	beats := s.Clock.NewTicker(quiet)
	defer beats.Stop()
	// A browser that comes again says what it has, so that it is sent what has changed since. Of the page that it was sent first
	// that is not known, so all is.
	for {
		if err := s.sendFrame(r.Context(), stream, target, pages); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-over:
			_ = stream.sendNote(sessionOver) // the browser may be gone, too
			return
		case <-changed:
		case <-beats.C():
			if s.Access.Visitor(r) == nil { // it has ended before its time
				_ = stream.sendNote(sessionOver)
				return
			}
			if stream.write(": still here\n\n") != nil {
				return
			}
		}
	}
}

// targetOf returns the page that a request wants to be kept up to date, or why it is not.
func targetOf(r *http.Request, pages *http.ServeMux) (target *url.URL, refused string, status int) {
	target, err := url.Parse(r.URL.Query().Get("page"))
	if err != nil || target.Scheme != "" || target.Host != "" || !strings.HasPrefix(target.Path, "/") {
		return nil, "There is no such page.", http.StatusBadRequest
	}
	if _, pattern := pages.Handler(requestOf(r.Context(), target)); pattern == "" {
		return nil, "This page does not change by itself.", http.StatusNotFound
	}
	return target, "", http.StatusOK
}

// stream is a page that is kept up to date.
type stream struct {
	controller *http.ResponseController
	w          http.ResponseWriter
	// sent are the digests of the parts that the browser has, and within, by part, those of what can be sent of it alone; what is around
	// that has no name there.
	sent   map[string]string
	within map[string]map[string]string
}

// digestBytes are enough to tell the states of a part of one page apart.
const digestBytes = 9

// differs reports whether a part is not as the browser has it, and takes it as sent.
func (s *stream) differs(id, html string) bool {
	digest := digestOf(html)
	before := s.sent[id]
	s.sent[id] = digest
	return before != digest
}

func digestOf(html string) string {
	sum := sha256.Sum256([]byte(html))
	return base64.RawURLEncoding.EncodeToString(sum[:digestBytes])
}

// changes returns what of a part is not as the browser has it: all of it, or only what is different in it.
func (s *stream) changes(p part) string {
	differs := s.differs(p.ID, string(p.HTML))
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
		return fmt.Sprintf("<div id=%q hx-swap-oob=\"outerMorph\">%s</div>\n", p.ID, p.HTML)
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

// id names the frame by what is in it, so that any dashboard can go on from it. What the browser itself writes, where it does
// not hear of the dashboard any more, is sent anew.
func (s *stream) id() string {
	var parts []string
	for id, digest := range s.sent {
		if id != troublePart {
			parts = append(parts, id+"="+digest)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// partsOf returns the digests of the parts that a frame has left a browser with; none if the text names no frame.
func partsOf(frame string) map[string]string {
	parts := map[string]string{}
	for part := range strings.SplitSeq(frame, ",") {
		if id, digest, is := strings.Cut(part, "="); is && len(parts) < maxParts {
			parts[id] = digest
		}
	}
	return parts
}

func (s *stream) write(text string) error {
	deadline := time.Now().Add(slowest)
	if err := errors.Join(ignoreUnsupported(s.controller.SetWriteDeadline(deadline)), writeAll(s.w, text)); err != nil {
		return err
	}
	return s.controller.Flush()
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func writeAll(w http.ResponseWriter, text string) error {
	_, err := w.Write([]byte(text))
	return err
}

// sendFrame sends the parts of a page that have changed, all in one event.
func (s *Server) sendFrame(ctx context.Context, stream *stream, target *url.URL, pages http.Handler) error {
	frame, err := s.frame(ctx, stream, target, pages)
	if err != nil || frame == "" {
		return err
	}
	return stream.write(frame)
}

// sendNote tells the user why the page is not kept up to date any more.
func (s *stream) sendNote(text string) error {
	note, err := writePart(troublePart, troublePart, text)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("data: <div id=%q hx-swap-oob=\"outerMorph\">%s</div>\n\n", note.ID, note.HTML))
}

// frame returns an event with the parts that have changed; empty if none has.
func (s *Server) frame(ctx context.Context, stream *stream, target *url.URL, pages http.Handler) (string, error) {
	var out bytes.Buffer
	made, err := collect(ctx, pages, target)
	trouble := s.fleet(ctx).Trouble
	gone := &missing{}
	switch {
	case errors.As(err, &gone):
		trouble = gone.Error() + " What you see is the last of it."
	case err != nil:
		trouble = "This page cannot be kept up to date: " + err.Error()
	}
	note, err := writePart(troublePart, troublePart, trouble)
	if err != nil {
		return "", err
	}
	for _, part := range append([]part{note}, made.Parts...) {
		out.WriteString(stream.changes(part))
	}
	if out.Len() == 0 {
		return "", nil
	}
	return "id: " + stream.id() + "\ndata: " + strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "\ndata: ") + "\n\n", nil
}
