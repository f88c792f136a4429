package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/parts"
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
	// wholeEvery is how often the map of a fleet and its history are drawn anew at most: that is work for all of it.
	wholeEvery = 2 * time.Second
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
	changed = s.spaced(r.Context(), changed, target.Path)
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	controller := http.NewResponseController(w)
	_ = controller.SetReadDeadline(time.Time{}) // a stream is longer than a request may take; what has no deadline needs none taken off
	stream := &stream{controller: controller, w: w, sent: parts.Since(r.Header.Get("Last-Event-ID"))}
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

// spaced returns what receives after changes as often as a page is drawn anew.
func (s *Server) spaced(ctx context.Context, changed <-chan struct{}, path string) <-chan struct{} {
	if path != mapPath && path != pastPath {
		return changed
	}
	spaced := make(chan struct{}, 1)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
			select {
			case spaced <- struct{}{}:
			default:
			}
			select {
			case <-ctx.Done():
				return
			case <-s.Clock.After(wholeEvery):
			}
		}
	}()
	return spaced
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
	sent       *parts.Sent
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
	return s.write("data: " + note.Swap() + "\n")
}

// frame returns an event with the parts that have changed; empty if none has.
func (s *Server) frame(ctx context.Context, stream *stream, target *url.URL, pages http.Handler) (string, error) {
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
	return stream.sent.Frame(troublePart, append([]parts.Part{note}, made.Parts...)), nil
}
