// Package elastic stands for the client of Elasticsearch, which Temporal can ask instead of its database (see ../README.md).
package elastic

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"
)

// ErrAbsent is what every call answers.
var ErrAbsent = errors.New("this Temporal server is built without the client of Elasticsearch")

type (
	// Client is never made.
	Client struct{}
	// ClientOptionFunc is never applied.
	ClientOptionFunc func(*Client) error
	// Logger is never written to.
	Logger interface{ Printf(format string, v ...any) }
	// NumberDecoder decodes nothing.
	NumberDecoder struct{}
	// Backoff waits for nothing.
	Backoff struct{}
	// PerformRequestOptions are never read.
	PerformRequestOptions struct {
		Method, Path, ContentType string
		Params                    url.Values
		Headers                   http.Header
		Body                      any
	}
)

// NewClient answers that the client is absent.
func NewClient(...ClientOptionFunc) (*Client, error) { return nil, ErrAbsent }

func option() ClientOptionFunc { return func(*Client) error { return ErrAbsent } }

// The options of a client do nothing.
func SetURL(...string) ClientOptionFunc                { return option() }
func SetBasicAuth(string, string) ClientOptionFunc     { return option() }
func SetHealthcheck(bool) ClientOptionFunc             { return option() }
func SetSniff(bool) ClientOptionFunc                   { return option() }
func SetRetrier(Backoff) ClientOptionFunc              { return option() }
func SetDecoder(*NumberDecoder) ClientOptionFunc       { return option() }
func SetGzip(bool) ClientOptionFunc                    { return option() }
func SetHttpClient(*http.Client) ClientOptionFunc      { return option() }
func SetErrorLog(Logger) ClientOptionFunc              { return option() }
func SetInfoLog(Logger) ClientOptionFunc               { return option() }
func SetTraceLog(Logger) ClientOptionFunc              { return option() }
func NewExponentialBackoff(_, _ time.Duration) Backoff { return Backoff{} }
func NewBackoffRetrier(b Backoff) Backoff              { return b }

// IsNotFound reports whether nothing was looked for.
func IsNotFound(any) bool { return false }

// Start does nothing.
func (*Client) Start() {}

// Stop does nothing.
func (*Client) Stop() {}

// Call is a request whose answer would be a T.
type Call[T any] struct{}

// Do answers that the client is absent.
func (*Call[T]) Do(context.Context) (answer T, err error) { return answer, ErrAbsent }

// What a request asks for is forgotten.
func (c *Call[T]) Index(...string) *Call[T]            { return c }
func (c *Call[T]) Id(string) *Call[T]                  { return c }
func (c *Call[T]) Version(any) *Call[T]                { return c }
func (c *Call[T]) VersionType(string) *Call[T]         { return c }
func (c *Call[T]) BodyJson(any) *Call[T]               { return c }
func (c *Call[T]) BodyString(string) *Call[T]          { return c }
func (c *Call[T]) Query(Query) *Call[T]                { return c }
func (c *Call[T]) SearchSource(*SearchSource) *Call[T] { return c }
func (c *Call[T]) WaitForYellowStatus() *Call[T]       { return c }

// The requests of a client are never sent.
func (*Client) Get() *Call[*GetResult]                        { return nil }
func (*Client) Search(...string) *Call[*SearchResult]         { return nil }
func (*Client) Count(...string) *Call[int64]                  { return nil }
func (*Client) PutMapping() *Call[*Acknowledgement]           { return nil }
func (*Client) ClusterHealth() *Call[*ClusterHealthResponse]  { return nil }
func (*Client) CreateIndex(string) *Call[*Acknowledgement]    { return nil }
func (*Client) DeleteIndex(...string) *Call[*Acknowledgement] { return nil }
func (*Client) IndexExists(...string) *Call[bool]             { return nil }
func (*Client) CatIndices() *Call[CatIndicesResponse]         { return nil }
func (*Client) Delete() *Call[*Acknowledgement]               { return nil }
func (*Client) Bulk() *BulkService                            { return nil }
func (*Client) BulkProcessor() *BulkProcessorService          { return nil }
func (*Client) Ping(string) *PingService                      { return nil }

// IndexPutTemplate returns a request that is never sent.
func (*Client) IndexPutTemplate(string) *Call[*Acknowledgement] { return nil }

// IndexPutSettings returns a request that is never sent.
func (*Client) IndexPutSettings(...string) *Call[*Acknowledgement] { return nil }

// IndexGetSettings returns a request that is never sent.
func (*Client) IndexGetSettings(...string) *Call[map[string]*IndicesGetSettingsResponse] { return nil }

// PerformRequest answers that the client is absent.
func (*Client) PerformRequest(context.Context, PerformRequestOptions) (*Response, error) {
	return nil, ErrAbsent
}

// PingService is never sent.
type PingService struct{}

// Do answers that the client is absent.
func (*PingService) Do(context.Context) (*Response, int, error) { return nil, 0, ErrAbsent }
