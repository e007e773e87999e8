using System;
using System.Diagnostics;
using System.Net;
using System.Net.Http;
using System.Text;

/// `client.exe HOST PORT WARM CALLS`: calls per second of a loop on HttpClient, without a kit. What
/// is thrown ends the process with 1.
static class Client {
    const string Words = "Hello World";

    static void Main(string[] args) {
        var handler = new HttpClientHandler { UseProxy = false }; // as the cell
        var http = new HttpClient(handler) { Timeout = TimeSpan.FromSeconds(5) };
        string address = $"http://{args[0]}:{args[1]}/echo";
        int warm = int.Parse(args[2]), calls = int.Parse(args[3]);
        Call(http, address);
        Console.WriteLine("begun");
        for (int i = 0; i < warm; i++)
            Call(http, address);
        var watch = Stopwatch.StartNew();
        Console.WriteLine("warm");
        for (int i = 0; i < calls; i++)
            Call(http, address);
        Console.WriteLine(calls / watch.Elapsed.TotalSeconds);
    }

    static void Call(HttpClient http, string address) {
        var content = new StringContent(Words, Encoding.UTF8, "text/plain");
        using (var response = http.PostAsync(address, content).GetAwaiter().GetResult()) {
            string found = response.Content.ReadAsStringAsync().GetAwaiter().GetResult();
            if (response.StatusCode != HttpStatusCode.OK || found != Words)
                throw new InvalidOperationException($"{response.StatusCode} {found}, not {Words}");
        }
    }
}
