package patience

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// short is how long requests of these tests wait for what never comes, ample how long for what comes.
const short, ample = 20 * time.Millisecond, time.Minute

// hub is an API server: what it is asked below /silent it never answers, a watch there after its heading, /half in two parts of which
// the second never comes.
func hub(t *testing.T) *httptest.Server {
	t.Helper()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/silent" {
			_, _ = io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
		}
		if r.URL.Path == "/" {
			return
		}
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	return server
}

// ask makes a request, and reads so much of its answer.
func ask(t *testing.T, p *Patience, server, method, path string, much int) error {
	t.Helper()
	c, err := rest.HTTPClientFor(p.Wrap(&rest.Config{Host: server, Timeout: time.Nanosecond}))
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), method, server+path, http.NoBody)
	require.NoError(t, err)
	answer, err := c.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.ReadFull(answer.Body, make([]byte, much))
	return err
}

func TestWhatIsNotAnsweredIsGivenUpAndSaysSinceWhen(t *testing.T) {
	server := hub(t)
	began := time.Date(2026, 1, 1, 17, 1, 34, 0, time.UTC)
	now := began
	p := &Patience{Reads: short, Flag: "--request-timeout", Now: func() time.Time { return now }}
	err := ask(t, p, server.URL, http.MethodGet, "/silent", 1)
	assert.EqualError(t, err, `Get "`+server.URL+`/silent": the API server has not answered for 20ms (--request-timeout), and nothing that it was asked since 17:01:34`)
	now = began.Add(time.Minute)
	later := &Unanswered{}
	require.ErrorAs(t, ask(t, p, server.URL, http.MethodGet, "/silent", 1), &later)
	assert.Equal(t, began, later.Since, "it has answered nothing in between")
	require.NoError(t, ask(t, p, server.URL, http.MethodGet, "/", 4))
	require.ErrorAs(t, ask(t, p, server.URL, http.MethodGet, "/silent", 1), &later)
	assert.Equal(t, now, later.Since, "it has answered since")
}

func TestAnAnswerThatStopsComingIsGivenUpAndAWatchIsNot(t *testing.T) {
	server := hub(t)
	p := &Patience{Reads: short, Now: time.Now}
	unanswered := &Unanswered{}
	require.ErrorAs(t, ask(t, p, server.URL, http.MethodGet, "/half", 5), &unanswered)

	p.Reads = ample
	c, err := rest.HTTPClientFor(p.Wrap(&rest.Config{Host: server.URL}))
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/half?watch=true", http.NoBody)
	require.NoError(t, err)
	answer, err := c.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	stream, is := answer.Body.(*body)
	require.True(t, is)
	assert.Zero(t, stream.limit)
	assert.False(t, stream.alarm.Stop(), "the watch would be given up")
}

func TestHowLongRequestsWait(t *testing.T) {
	p := &Patience{Reads: Reads, Writes: Writes, Now: time.Now}
	assert.Equal(t, Reads, p.limit("hub", http.MethodGet))
	require.Error(t, p.miss("hub", time.Now(), Reads))
	assert.Equal(t, least, p.limit("hub", http.MethodGet), "a command that makes many reads would wait for each")
	assert.Equal(t, Reads, p.limit("member-1", http.MethodGet), "which is another server")
	assert.Equal(t, Writes, p.limit("hub", http.MethodPatch), "a write whose outcome is not known is worse than a late one")
	p.hear("hub")
	assert.Equal(t, Reads, p.limit("hub", http.MethodGet))
	p.Reads = time.Second
	require.Error(t, p.miss("hub", time.Now(), time.Second))
	assert.Equal(t, time.Second, p.limit("hub", http.MethodGet), "the user has said less")
	p.Reads = 0
	assert.Zero(t, p.limit("hub", http.MethodGet), "the user waits without end")
}

func TestWithoutALimitNothingIsGivenUp(t *testing.T) {
	server := hub(t)
	require.NoError(t, ask(t, &Patience{Now: time.Now}, server.URL, http.MethodGet, "/", 4))
	err := ask(t, &Patience{Reads: ample, Now: time.Now}, "http://127.0.0.1:1", http.MethodGet, "/", 1)
	require.Error(t, err)
	assert.False(t, errors.As(err, new(*Unanswered)), "a server that refuses has answered")
}
