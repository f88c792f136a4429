package elastic

import (
	"context"
	"time"
)

// Writes in bulk are never sent.
type (
	BulkService          struct{}
	BulkProcessor        struct{}
	BulkProcessorService struct{}
	BulkRequest          struct{}
	BulkableRequest      interface {
		String() string
		Source() ([]string, error)
	}
	BulkResponseItem struct {
		Id, Result string
		Status     int
		Error      *ErrorDetails
	}
	BulkResponse struct {
		Took  int
		Items []map[string]*BulkResponseItem
	}
	BulkBeforeFunc func(id int64, requests []BulkableRequest)
	BulkAfterFunc  func(id int64, requests []BulkableRequest, response *BulkResponse, err error)
)

func NewBulkIndexRequest() *BulkRequest  { return &BulkRequest{} }
func NewBulkDeleteRequest() *BulkRequest { return &BulkRequest{} }

func (r *BulkRequest) Index(string) *BulkRequest       { return r }
func (r *BulkRequest) Id(string) *BulkRequest          { return r }
func (r *BulkRequest) Version(int64) *BulkRequest      { return r }
func (r *BulkRequest) VersionType(string) *BulkRequest { return r }
func (r *BulkRequest) Doc(any) *BulkRequest            { return r }
func (*BulkRequest) String() string                    { return "" }
func (*BulkRequest) Source() ([]string, error)         { return nil, ErrAbsent }

func (b *BulkService) Add(...BulkableRequest) *BulkService     { return b }
func (*BulkService) NumberOfActions() int                      { return 0 }
func (*BulkService) Do(context.Context) (*BulkResponse, error) { return nil, ErrAbsent }

func (*BulkProcessor) Add(BulkableRequest) {}
func (*BulkProcessor) Flush() error        { return ErrAbsent }
func (*BulkProcessor) Stop() error         { return nil }

func (s *BulkProcessorService) Name(string) *BulkProcessorService                 { return s }
func (s *BulkProcessorService) Workers(int) *BulkProcessorService                 { return s }
func (s *BulkProcessorService) BulkActions(int) *BulkProcessorService             { return s }
func (s *BulkProcessorService) BulkSize(int) *BulkProcessorService                { return s }
func (s *BulkProcessorService) FlushInterval(time.Duration) *BulkProcessorService { return s }
func (s *BulkProcessorService) Before(BulkBeforeFunc) *BulkProcessorService       { return s }
func (s *BulkProcessorService) After(BulkAfterFunc) *BulkProcessorService         { return s }
func (s *BulkProcessorService) RetryItemStatusCodes(...int) *BulkProcessorService { return s }
func (*BulkProcessorService) Do(context.Context) (*BulkProcessor, error)          { return nil, ErrAbsent }
