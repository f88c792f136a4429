package selection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	"k8s.io/utils/lru"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Flags of the hub agent for the ceiling. Messages name them.
const (
	MaxObjectsFlag = "selection-max-objects"
	MaxBytesFlag   = "selection-max-bytes"
)

// Ceiling is how much one placement may select; 0 is no bound.
type Ceiling struct {
	Objects int64
	// Bytes of JSON, after stripping.
	Bytes int64
}

const (
	// smallReading is how many bytes the answers to a selection may have that takes no slot for
	// large ones.
	smallReading = 4 << 20
	// largePage is how many bytes one answer to a large selection may have; a list is asked for
	// in smaller pages otherwise. One object is never that large.
	largePage = 16 << 20
)

var (
	// errLarge says that a selection needs a slot for large ones.
	errLarge = errors.New("the selection is large and waits for its turn")
	// errLargePage says that a list has to be asked for in smaller pages.
	errLargePage = errors.New("the answer is large and is read in smaller pages")
	// errTooMuch says that a selection has reached the ceiling.
	errTooMuch = errors.New("too much is selected")
)

// reading counts what one selection reads, over all its requests.
type reading struct {
	ceiling Ceiling
	// large says that the selection has a slot for large ones.
	large bool
	// answered is how many bytes the answers had so far, objects and bytes how much of that is
	// placed. An object that several selectors select counts for each.
	answered, objects, bytes atomic.Int64
}

// isLarge reports whether the selection needed its slot for large ones.
func (r *reading) isLarge() bool { return r.answered.Load() > smallReading }

// countItem counts an object that is placed. The error is errTooMuch or errLarge.
func (r *reading) countItem(size int) error {
	objects := r.objects.Add(1)
	bytes := r.bytes.Add(int64(size))
	switch {
	case r.ceiling.Objects > 0 && objects > r.ceiling.Objects, r.ceiling.Bytes > 0 && bytes > r.ceiling.Bytes:
		return errTooMuch
	case !r.large && bytes > smallReading:
		return errLarge
	}
	return nil
}

// countAnswer counts bytes of an answer that has had so many by now. The error is errLarge or
// errLargePage.
func (r *reading) countAnswer(n, page int64) error {
	answered := r.answered.Add(n)
	switch {
	case !r.large && answered > smallReading:
		return errLarge
	case r.large && page > largePage:
		return errLargePage
	}
	return nil
}

// describeTooMuch returns what has reached the ceiling: which query has found most.
func (r *reading) describeTooMuch(queries []*objectQuery) *snapshot.InvalidError {
	most := queries[0]
	flag := MaxObjectsFlag
	limit := fmt.Sprintf("%d objects", r.ceiling.Objects)
	share := func(q *objectQuery) int64 { return int64(len(q.found)) }
	format := func(n int64) string { return fmt.Sprintf("%d", n) }
	if r.ceiling.Objects <= 0 || r.objects.Load() <= r.ceiling.Objects {
		flag = MaxBytesFlag
		limit = snapshot.FormatBytes(r.ceiling.Bytes)
		format = snapshot.FormatBytes
		share = (*objectQuery).foundBytes
	}
	for _, q := range queries {
		if share(q) > share(most) {
			most = q
		}
	}
	return &snapshot.InvalidError{Reason: snapshot.ReasonTooMuch, Message: fmt.Sprintf(
		"The resource selectors select more than %s, of which at least %s are %s: select less, or place it with several placements, "+
			"or have the operator of the hub raise --%s of the hub agent. What was placed before stays as it is",
		limit, format(share(most)), most.describeSource(), flag)}
}

// keptLarge is how many placements are known to be large: of another one that is found out anew.
const keptLarge = 1024

// largePlacements remembers the placements whose last selection in this process was large.
type largePlacements struct{ uids *lru.Cache }

func (l largePlacements) isKnown(placement placementv1beta1.PlacementObject) bool {
	if l.uids == nil {
		return false
	}
	_, known := l.uids.Get(placement.GetUID())
	return known
}

func (l largePlacements) setLarge(placement placementv1beta1.PlacementObject, large bool) {
	switch {
	case l.uids == nil:
	case large:
		l.uids.Add(placement.GetUID(), true)
	default:
		l.uids.Remove(placement.GetUID())
	}
}

type readingKey struct{}

// withReading lets requests made with the context be counted.
func withReading(ctx context.Context, r *reading) context.Context {
	return context.WithValue(ctx, readingKey{}, r)
}

// countingTransport counts the answers to requests of selections while they are read, so that
// none of them fills the memory before its objects can be counted.
type countingTransport struct{ next http.RoundTripper }

func (t countingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if r, ok := request.Context().Value(readingKey{}).(*reading); ok && err == nil {
		response.Body = &countedBody{ReadCloser: response.Body, reading: r}
	}
	return response, err
}

// WrappedRoundTripper returns what makes the requests, for client-go to find the connections.
func (t countingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// countedBody is the body of an answer.
type countedBody struct {
	io.ReadCloser
	reading *reading
	size    int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.size += int64(n)
	if exceeded := b.reading.countAnswer(int64(n), b.size); exceeded != nil {
		return n, exceeded
	}
	return n, err
}
