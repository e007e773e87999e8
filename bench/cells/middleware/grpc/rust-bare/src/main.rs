//! `node HOST PORT WARM CALLS`: calls per second of a loop on a tonic client, without a kit.

use std::env;
use std::process::exit;
use std::time::{Duration, Instant};

use tonic::transport::Channel;
use tonic::{Request, Status};
use wire::calls_client::CallsClient;
use wire::TextPayload;

mod wire {
    tonic::include_proto!("wattwire");
}

const TEXT: &str = "Hello World";

async fn call(client: &mut CallsClient<Channel>) -> Result<(), Status> {
    let mut request = Request::new(TextPayload { data: TEXT.into() });
    request.set_timeout(Duration::from_secs(5));
    let reply = client.text(request).await?.into_inner();
    if reply.data != TEXT {
        eprintln!("the reply is {:?}, not {TEXT:?}", reply.data);
        exit(1);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = env::args().collect();
    let [_, host, port, warm, calls] = &words[..] else { panic!("node HOST PORT WARM CALLS") };
    let (warm, calls) = (warm.parse()?, calls.parse()?);
    let mut client = CallsClient::connect(format!("http://{host}:{port}")).await?;
    call(&mut client).await?;
    println!("begun");
    for _ in 0..warm {
        call(&mut client).await?;
    }
    let start = Instant::now();
    println!("warm");
    for _ in 0..calls {
        call(&mut client).await?;
    }
    println!("{}", f64::from(calls) / start.elapsed().as_secs_f64());
    Ok(())
}
