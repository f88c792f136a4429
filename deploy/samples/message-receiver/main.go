// Command message-receiver stands, on one machine, for a chat that takes messages by an incoming webhook and for a server of mail: it writes what it
// gets to files of a folder. The guide to notifications is followed with it.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// names of files: those of the certificate, and of what has arrived.
	authorityFile, keyFile = "ca.crt", "tls.key"
	chatFile, mailFile     = "chat", "mail"
	// processFile has the process, by which it is ended.
	processFile = "pid"
	// day is for how long the certificate counts, and patience how long a client may take.
	day      = 24 * time.Hour
	patience = time.Minute
)

func main() {
	chat := flag.String("chat", "127.0.0.1:8098", "address of the chat")
	mail := flag.String("mail", "127.0.0.1:8099", "address of the server of mail")
	folder := flag.String("folder", ".", "folder of the certificate, and of what arrives")
	certificate := flag.Bool("certificate", false, "write a certificate for 127.0.0.1 to the folder, and do no more")
	flag.Parse()
	var err error
	if *certificate {
		err = writeCertificate(*folder)
	} else {
		err = receive(*folder, *chat, *mail)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// writeCertificate makes a certificate that vouches for itself.
func writeCertificate(folder string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(day), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{authorityFile: {Type: "CERTIFICATE", Bytes: public}, keyFile: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// receive writes what arrives to files, until it is ended.
func receive(folder, chat, mail string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, authorityFile), filepath.Join(folder, keyFile))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", mail)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, processFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	go takeMail(listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, filepath.Join(folder, mailFile))
	server := &http.Server{Addr: chat, Handler: takeChat(filepath.Join(folder, chatFile)), ReadHeaderTimeout: patience}
	return server.ListenAndServe()
}

// takeChat writes the texts of messages as Slack takes them, a line each.
func takeChat(file string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var message struct {
			Text   string
			Blocks []struct{ Text struct{ Text string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil || message.Text == "" {
			http.Error(w, "invalid_payload", http.StatusBadRequest)
			return
		}
		var lines strings.Builder
		for _, block := range message.Blocks {
			fmt.Fprintln(&lines, block.Text.Text)
		}
		if err := add(file, lines.String()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}
}

// takeMail takes mail from whoever encrypts.
func takeMail(listener net.Listener, security *tls.Config, file string) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			if err := talk(connection, security, file); err != nil {
				log.Print(err)
			}
		}()
	}
}

// talk speaks SMTP with one client.
func talk(connection net.Conn, security *tls.Config, file string) error {
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	text := textproto.NewConn(connection)
	answer := "220 message-receiver"
	isEncrypted := false
	for {
		if err := text.PrintfLine("%s", answer); err != nil {
			return err
		}
		line, err := text.ReadLine()
		if err != nil {
			return err
		}
		verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
		answer = "250 ok"
		switch {
		case verb == "EHLO" && !isEncrypted:
			answer = "250-message-receiver\r\n250 STARTTLS"
		case verb == "STARTTLS":
			if err := text.PrintfLine("220 begin"); err != nil {
				return err
			}
			connection = tls.Server(connection, security)
			text = textproto.NewConn(connection)
			isEncrypted = true
			if line, err = text.ReadLine(); err != nil { // the client says hello once more
				return fmt.Errorf("%s: %w", line, err)
			}
		case !isEncrypted:
			answer = "530 encrypt first"
		case verb == "DATA":
			if err := takeLetter(text, file); err != nil {
				return err
			}
		case verb == "QUIT":
			return text.PrintfLine("221 bye")
		}
	}
}

// takeLetter adds a letter to a file.
func takeLetter(text *textproto.Conn, file string) error {
	if err := text.PrintfLine("354 begin"); err != nil {
		return err
	}
	letter, err := io.ReadAll(text.DotReader())
	if err != nil {
		return err
	}
	return add(file, string(letter))
}

// add writes to the end of a file.
func add(name, text string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
